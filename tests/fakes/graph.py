"""A Graph without engines: scripted answers, gates that release them one by one, failures, and counts of what is open.

What each entry stage answers:
  vad      one activity window per 768 samples at 24 kHz, 1.0 where the sound is loud (`tone`), else 0.0; with the outputs
           transcript, text or audio it waits for the end of its input and answers as the stages behind it do
  turn     the next of `end_of_turn`
  asr      the next of `transcripts`, one chunk
  thinker  the deltas of the next of `answers`, after its (empty) input has ended; with an audio output also speech,
           one clause per delta; asked to weigh an ending, the logarithm of the next of `endings`
  talker, narrator   speech, one clause per pushed text
  pixels, painter    files, as fakes/painted.py says
Scripts are lists: each request takes the first entry, and the last one stays for all that follow.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import TypeAlias, TypeVar

import numpy as np

from engines.chunks import ChunkTiming
from engines.messages.to_gateway import ErrorKind
from engines.parameters import Generation
from engines.payloads import Array, Payload, Scalar, audio
from engines.requests import Delivery, Request, RequestFailed, StageTiming
from fakes import painted

WINDOW_SAMPLES = 768
LOUD = 1_000
MS_PER_CHARACTER = 60
T = TypeVar("T")
Scripted: TypeAlias = tuple[str, Payload, float, bool]
"""output, payload, pts, final"""


def tone(duration_ms: float, rate: int = 24_000) -> bytes:
    """What the fake voice activity takes for speech."""
    samples = int(duration_ms * rate / 1000)
    return (8_000 * np.sin(np.arange(samples) * 0.3)).astype("<i2").tobytes()


def hiss(duration_ms: float, rate: int = 24_000) -> bytes:
    """A loud sound at −32 dBFS, which the fake voice activity does not take for speech: an "s", or a door."""
    samples = int(duration_ms * rate / 1000)
    return (800 * np.where(np.arange(samples) % 2, 1, -1)).astype("<i2").tobytes()


def silence(duration_ms: float, rate: int = 24_000) -> bytes:
    return bytes(2 * int(duration_ms * rate / 1000))


class Gate:
    """Holds back the deliveries of one output until the test lets them through."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._permits = 0
        self._open = False

    def step(self, count: int = 1) -> None:
        self._permits += count
        self._ring()

    def release(self) -> None:
        self._open = True
        self._ring()

    def take(self) -> bool:
        if not self._open and self._permits == 0:
            return False
        if not self._open:
            self._permits -= 1
        return True


class FakeGraph:
    def __init__(self, missing: tuple[str, ...] = ()) -> None:
        self.missing = missing
        self.end_of_turn: list[float] = [0.95]
        self.endings: list[float] = [0.9]
        self.painter_tells: dict[str, Scalar] = {}
        self.transcripts: list[str] = ["What is the capital of France?"]
        self.answers: list[tuple[str, ...]] = [("The capital of France ", "is Paris.")]
        self.finish_reason = "stop"
        self.requests: list[Request] = []
        self.streams: list[FakeStream] = []
        self.open_requests = 0
        self.aborted: list[str] = []
        self.pushed: dict[str, list[Payload]] = {}
        self._gates: dict[str, Gate] = {}
        self._failures: dict[str, tuple[int, RequestFailed]] = {}
        self._submit_failures: dict[str, RequestFailed] = {}
        self._submit_gates: dict[str, Gate] = {}
        self._bell = asyncio.Event()

    # scripting

    def hold(self, output: str) -> Gate:
        """Deliveries of `output` (activity, end_of_turn, transcript, ending, text, audio, narration) wait for the gate from
        now on."""
        return self._gates.setdefault(output, Gate(self.ring))

    def hold_submit(self, entry: str) -> Gate:
        """`submit` of requests with this entry ("ending": to weigh one) waits for the gate from now on."""
        return self._submit_gates.setdefault(entry, Gate(self.ring))

    def fail(self, output: str, kind: ErrorKind = ErrorKind.ENGINE, *, after: int = 0, message: str = "scripted") -> None:
        """The next request that would deliver `output` fails instead, after `after` deliveries of it."""
        self._failures[output] = (after, RequestFailed(kind, output, message))

    def fail_submit(self, entry: str, kind: ErrorKind = ErrorKind.OVERLOADED, message: str = "scripted") -> None:
        """The next submit with this entry ("ending": to weigh one) is refused."""
        self._submit_failures[entry] = RequestFailed(kind, entry, message)

    def lose(self, entry: str) -> None:
        """The worker dies: every open request with this entry fails with replica_lost."""
        for stream in self.streams:
            if stream.request.entry == entry:
                stream.lose(RequestFailed(ErrorKind.REPLICA_LOST, entry, "worker lost"))
        self.ring()

    def ring(self) -> None:
        self._bell.set()
        self._bell = asyncio.Event()

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._bell.wait()

    def of(self, entry: str) -> list[Request]:
        """Requests with this entry; of the thinker's those for an answer."""
        return [request for request in self.requests if request.entry == entry and not _weighs(request)]

    def weighed(self) -> list[Request]:
        return [request for request in self.requests if _weighs(request)]

    # Graph

    async def submit(self, request: Request) -> "FakeStream":
        what = "ending" if _weighs(request) else request.entry
        gate = self._submit_gates.get(what)
        if gate is not None:
            await self.wait_for(gate.take)
        if what in self._submit_failures:
            raise self._submit_failures.pop(what)
        for output in request.outputs:
            if not self.offers(output):
                raise RequestFailed(ErrorKind.INVALID, request.entry, f"output {output!r} is not deployed")
        stream = FakeStream(self, request)
        self.requests.append(request)
        self.streams.append(stream)
        self.open_requests += 1
        self.ring()
        return stream

    def offers(self, output: str) -> bool:
        return output not in self.missing

    # used by its streams

    async def pass_gate(self, output: str, ended: Callable[[], bool]) -> None:
        gate = self._gates.get(output)
        if gate is not None:
            await self.wait_for(lambda: ended() or gate.take())

    def failure(self, output: str, delivered: int) -> RequestFailed | None:
        scripted = self._failures.get(output)
        if scripted is None or scripted[0] > delivered:
            return None
        del self._failures[output]
        return scripted[1]


class FakeStream:
    """One open request of a FakeGraph."""

    def __init__(self, graph: FakeGraph, request: Request) -> None:
        self._graph = graph
        self._request = request
        self._inputs: list[Payload] = []
        self._input_ended = False
        self._ended = False
        self._loss: RequestFailed | None = None
        self._delivered: dict[str, int] = {}
        graph.pushed[request.request_id] = []

    @property
    def request(self) -> Request:
        return self._request

    async def push(self, payload: Payload, *, final: bool = False) -> None:
        if self._ended:
            return
        self._graph.pushed[self._request.request_id].append(payload)
        self._inputs.append(payload)
        self._input_ended = final
        self._graph.ring()

    async def abort(self) -> None:
        if not self._ended:
            self._graph.aborted.append(self._request.request_id)
        self._end()

    def lose(self, loss: RequestFailed) -> None:
        self._loss = loss

    def timing(self) -> Mapping[str, StageTiming]:
        return {self._request.entry: StageTiming(1.0, 0.5, 2.0, sum(self._delivered.values()))}

    async def __aenter__(self) -> "FakeStream":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.abort()

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        """A reader that stops half-way leaves the request open until it is aborted."""
        async with aclosing(self._script()) as script:
            async for output, payload, pts, final in script:
                await self._graph.pass_gate(output, self._stopped)
                failure = self._loss or self._graph.failure(output, self._delivered.get(output, 0))
                if failure is not None:
                    self._end()
                    raise failure
                if self._ended:
                    return
                yield self._delivery(output, payload, pts, final)
        self._end()
        if self._loss is not None:
            raise self._loss

    def _delivery(self, output: str, payload: Payload, pts: float, final: bool) -> Delivery:
        seq = self._delivered.get(output, 0)
        self._delivered[output] = seq + 1
        name = "text" if output == "ending" else output
        return Delivery(name, self._request.entry, seq, payload, pts, final, ChunkTiming(0.5, 1.0))

    def _stopped(self) -> bool:
        return self._ended or self._loss is not None

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._graph.open_requests -= 1
            self._graph.ring()

    async def _script(self) -> AsyncGenerator[Scripted, None]:
        entry, outputs = self._request.entry, self._request.outputs
        if (script := self._script_of_one_kind(entry, outputs)) is not None:
            async for item in script:
                yield item
            return
        await self._graph.wait_for(lambda: self._input_ended or self._stopped())
        if self._stopped():
            return
        if entry == "turn":
            yield "end_of_turn", Payload(attributes={"probability": _next(self._graph.end_of_turn)}), 0.0, True
        if "transcript" in outputs:
            yield "transcript", Payload(text=_next(self._graph.transcripts), attributes={"audio_s": self._audio_s()}), 0.0, True
        if _weighs(self._request):
            yield "ending", Payload(attributes={"ending": math.log(_next(self._graph.endings))}), 0.0, True
        elif "text" in outputs:
            for item in _answer(_next(self._graph.answers), outputs, self._graph.finish_reason):
                yield item

    def _script_of_one_kind(self, entry: str, outputs: tuple[str, ...]) -> AsyncGenerator[Scripted, None] | None:
        if entry == "vad" and outputs == ("activity",):
            return self._activity()
        if entry in ("talker", "narrator"):
            return self._speech_of_inputs(outputs[0])
        return self._files(outputs[0]) if entry in ("pixels", "painter") else None

    async def _files(self, output: str) -> AsyncGenerator[Scripted, None]:
        await self._graph.wait_for(lambda: self._input_ended or self._stopped())
        if self._stopped():
            return
        for payload in painted.files(self._request, self._inputs, self._graph.painter_tells):
            yield output, payload, 0.0, False
        yield output, Payload(), 0.0, True

    def _audio_s(self) -> float:
        return sum(len(payload.arrays["pcm"].data) / 2 / int(payload.attributes["rate"]) for payload in self._inputs)

    async def _activity(self) -> AsyncGenerator[Scripted, None]:
        heard, windows = b"", 0
        while True:
            await self._graph.wait_for(lambda: bool(self._inputs) or self._input_ended or self._stopped())
            if self._stopped():
                return
            if not self._inputs:
                yield "activity", Payload(), windows * 0.032, True
                return
            heard += self._inputs.pop(0).arrays["pcm"].data
            count = len(heard) // (2 * WINDOW_SAMPLES)
            if count:
                samples = np.frombuffer(heard, "<i2", count * WINDOW_SAMPLES).reshape(count, WINDOW_SAMPLES)
                probability = (np.abs(samples).max(axis=1) > LOUD).astype(np.float32)
                arrays = {"probability": Array.of(probability)}
                yield "activity", Payload(arrays=arrays, attributes={"window_ms": 32}), windows * 0.032, False
                heard, windows = heard[2 * count * WINDOW_SAMPLES :], windows + count

    async def _speech_of_inputs(self, output: str) -> AsyncGenerator[Scripted, None]:
        written, clause, pts = 0, 0, 0.0
        while True:
            await self._graph.wait_for(lambda: bool(self._inputs) or self._input_ended or self._stopped())
            if self._stopped():
                return
            if not self._inputs:
                yield output, Payload(), pts, True
                return
            text = self._inputs.pop(0).text
            written += len(text)
            yield output, _speech(text, clause, written), pts, False
            clause, pts = clause + 1, pts + len(text) * MS_PER_CHARACTER / 1000


def _weighs(request: Request) -> bool:
    thinking = request.parameters.get("thinker")
    return isinstance(thinking, Generation) and thinking.weigh_ending


def _next(script: list[T]) -> T:
    return script.pop(0) if len(script) > 1 else script[0]


def _speech(text: str, clause: int, written_end: int) -> Payload:
    sound = audio(tone(len(text) * MS_PER_CHARACTER), 24_000)
    place: dict[str, bool | int | float | str] = {"clause": clause, "written_end": written_end, "clause_final": True}
    return Payload(arrays=sound.arrays, attributes={**sound.attributes, **place})


def _counts(completion_tokens: int) -> dict[str, bool | int | float | str]:
    return {"prompt_tokens": 20, "cached_tokens": 8, "completion_tokens": completion_tokens}


def _answer(deltas: tuple[str, ...], outputs: tuple[str, ...], finish_reason: str) -> list[Scripted]:
    spoken = next((output for output in outputs if output in ("audio", "narration")), None)
    result: list[Scripted] = []
    written, pts = 0, 0.0
    for clause, delta in enumerate(deltas):
        result.append(("text", Payload(text=delta, attributes=_counts(clause + 1)), 0.0, False))
        written += len(delta)
        if spoken is not None:
            result.append((spoken, _speech(delta, clause, written), pts, False))
            pts += len(delta) * MS_PER_CHARACTER / 1000
    result.append(("text", Payload(attributes=_counts(len(deltas)) | {"finish_reason": finish_reason}), 0.0, True))
    if spoken is not None:
        result.append((spoken, Payload(), pts, True))
    return result
