"""A call in which time is counted in samples: a real session, real ears, and an agent that speaks a passage.

The ears (vad, end of turn, recogniser) and the thinker's weighing are the models themselves, run when they are asked; what they
answer is delivered as much later, on the call's clock, as it takes in the default deployment. So a call runs as fast as the
models do, and comes out the same each time.
"""

import asyncio
import heapq
import itertools
import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

import msgspec
import numpy as np

from engines.chunks import ChunkTiming
from engines.models.silero_vad import SileroVad
from engines.models.smart_turn import SmartTurn
from engines.models.vllm_text import VllmText
from engines.models.whisper import Whisper
from engines.parameters import EndOfTurn, Generation, Recognition
from engines.payloads import Payload, audio
from engines.requests import Delivery, Request, StageTiming
from recordings import RATE, Samples, to_pcm
from sessions.voice.playout import SILENT_DB, Heard, Playing

SLOT_MS = 20
SLOT_SAMPLES = RATE * SLOT_MS // 1000
DELAYS_MS = {"vad": 5, "turn": 30, "asr": 120, "ending": 50, "answer": 250}
"""Medians of the default deployment on two cores, one call at a time."""
LEVEL_SLOTS = 100
AGENT_DB = -20.0
LONGEST_S = 60


class Timeline:
    """The call's clock. `idle` says that nothing real is under way."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._working = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def clock(self) -> float:
        return self.now_ms / 1000

    async def until(self, at_ms: float) -> None:
        if at_ms > self.now_ms:
            due: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (at_ms, next(self._numbers), due))
            await due

    async def pass_ms(self, ms: float) -> None:
        """Everything that can happen in this time has happened when it returns."""
        end_ms = self.now_ms + ms
        await self._settle()
        while self._waiting and self._waiting[0][0] <= end_ms:
            at_ms, _, due = heapq.heappop(self._waiting)
            self.now_ms = at_ms
            if not due.done():
                due.set_result(None)
                await self._settle()
        self.now_ms = end_ms

    def work_begins(self) -> None:
        self._working += 1
        self._idle.clear()

    def work_ends(self) -> None:
        self._working -= 1
        if not self._working:
            self._idle.set()

    async def _settle(self) -> None:
        for _ in range(25):
            await asyncio.sleep(0)
        while not self._idle.is_set():
            await self._idle.wait()
            for _ in range(25):
                await asyncio.sleep(0)


class Ears(msgspec.Struct, frozen=True):
    """The models of the default deployment that listen and understand."""

    vad: SileroVad
    turn: SmartTurn
    asr: Whisper
    thinker: VllmText


class Passage(msgspec.Struct, frozen=True):
    """What the agent answers, sentence by sentence."""

    texts: tuple[str, ...]
    sounds: tuple[Samples, ...]


class CallGraph:
    """Implements engines.requests.Graph for one call."""

    def __init__(self, ears: Ears, passage: Passage, timeline: Timeline) -> None:
        self.ears = ears
        self.passage = passage
        self.timeline = timeline

    async def submit(self, request: Request) -> "Running":
        return Running(self, request)

    def offers(self, output: str) -> bool:
        return output != "narration"


class Running:
    """One request of a call."""

    def __init__(self, graph: CallGraph, request: Request) -> None:
        self._graph = graph
        self._request = request
        self._came: asyncio.Queue[tuple[float, Payload, bool]] = asyncio.Queue(1_000)
        """Bounded by what one call can push before it reads."""
        self._listening = graph.ears.vad.open(request.parameters["vad"]) if request.entry == "vad" else None
        self._over = False
        self._seq = itertools.count()

    @property
    def request(self) -> Request:
        return self._request

    async def push(self, payload: Payload, *, final: bool = False) -> None:
        delay_ms = DELAYS_MS["vad"] if self._listening is not None else 0
        if self._listening is None:
            self._came.put_nowait((self._graph.timeline.now_ms, payload, True))
            return
        produced = self._graph.ears.vad.run([(self._listening, payload)])[0]
        assert isinstance(produced, list), produced
        for each in produced:
            self._came.put_nowait((self._graph.timeline.now_ms + delay_ms, each.payload, False))

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while not self._over:
            at_ms, payload, final = await self._came.get()
            if not final:
                await self._graph.timeline.until(at_ms)
                yield self._delivery("activity", payload, final=False)
                continue
            async for delivery in self._answer(payload):
                yield delivery
            return

    async def _answer(self, payload: Payload) -> AsyncGenerator[Delivery, None]:
        timeline, asked_ms = self._graph.timeline, self._graph.timeline.now_ms
        thinking = self._request.parameters.get("thinker")
        if self._request.entry == "thinker" and isinstance(thinking, Generation) and not thinking.weigh_ending:
            await timeline.until(asked_ms + DELAYS_MS["answer"])
            for delivery in self._speech():
                yield delivery
            return
        name = "ending" if self._request.entry == "thinker" else self._request.entry
        timeline.work_begins()
        try:
            answer = await self._understood(name, payload)
        finally:
            timeline.work_ends()
        await timeline.until(asked_ms + DELAYS_MS[name])
        yield self._delivery(self._request.outputs[0], answer, final=True)

    async def _understood(self, name: str, payload: Payload) -> Payload:
        ears = self._graph.ears
        if name == "ending":
            thinking = self._request.parameters["thinker"]
            assert isinstance(thinking, Generation)
            return Payload(attributes={"ending": await ears.thinker.ending(thinking.messages)})
        if name == "asr":
            produced = ears.asr.run([(ears.asr.open(Recognition()), payload)])[0]
        else:
            produced = ears.turn.run([(ears.turn.open(EndOfTurn()), payload)])[0]
        assert isinstance(produced, list), produced
        return produced[0].payload

    def _speech(self) -> list[Delivery]:
        written, deliveries = 0, list[Delivery]()
        passage = self._graph.passage
        for clause, (text, sound) in enumerate(zip(passage.texts, passage.sounds, strict=True)):
            written += len(text) + 1
            deliveries.append(self._delivery("text", Payload(text=text + " "), final=False))
            place: dict[str, bool | int | float | str] = {"clause": clause, "written_end": written, "clause_final": True}
            pcm = audio(to_pcm(sound), RATE)
            spoken = Payload(arrays=pcm.arrays, attributes={**pcm.attributes, **place})
            deliveries.append(self._delivery("audio", spoken, final=False))
        counts: dict[str, bool | int | float | str] = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": written}
        return [*deliveries, self._delivery("text", Payload(attributes={**counts, "finish_reason": "stop"}), final=True)]

    def _delivery(self, output: str, payload: Payload, *, final: bool) -> Delivery:
        timing = ChunkTiming(0.0, 1.0)
        return Delivery(output, self._request.entry, next(self._seq), payload, 0.0, final, timing)

    async def abort(self) -> None:
        self._over = True

    def timing(self) -> Mapping[str, StageTiming]:
        return {}

    async def __aenter__(self) -> "Running":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.abort()


class SpeakerPlayout:
    """Plays answers slot by slot, as the server's side does, and keeps what was played."""

    def __init__(self) -> None:
        self.held = False
        self.held_ms = 0
        """Time in which the agent had something to say and was not let."""
        self.holds: list[int] = []
        """When each began, in milliseconds of the call."""
        self._played = np.zeros(RATE * LONGEST_S, np.float32)
        self._slots = 0
        self._waiting: deque[Samples] = deque()
        self._ids = ("", "")
        self._heard_ms = 0
        self._levels: deque[float] = deque([SILENT_DB] * LEVEL_SLOTS, LEVEL_SLOTS)

    @property
    def has_floor(self) -> bool:
        return bool(self._waiting)

    def playing(self) -> Playing | None:
        return Playing(self._ids[1], self._heard_ms, len(self._waiting) * SLOT_MS) if self._waiting else None

    def put(self, response_id: str, item_id: str, pcm: bytes) -> None:
        self._ids = response_id, item_id
        samples = (np.frombuffer(pcm, "<i2") / 32_768).astype(np.float32)
        self._waiting.extend(samples[start : start + SLOT_SAMPLES] for start in range(0, len(samples), SLOT_SAMPLES))

    def next(self) -> None:
        slot = np.zeros(SLOT_SAMPLES, np.float32)
        if self._waiting and self.held:
            self.held_ms += SLOT_MS
        elif self._waiting:
            sound = self._waiting.popleft()
            slot[: len(sound)] = sound
            self._heard_ms += SLOT_MS
        power = float(np.square(slot).mean())
        self._levels.append(max(10 * math.log10(power), SILENT_DB) if power else SILENT_DB)
        start = self._slots * SLOT_SAMPLES
        self._played[start : start + SLOT_SAMPLES] = slot
        self._slots += 1

    @property
    def played(self) -> Samples:
        """All of it, silence included."""
        return self._played[: self._slots * SLOT_SAMPLES]

    def hold(self) -> None:
        if not self.held:
            self.holds.append(self._slots * SLOT_MS)
        self.held = True

    def resume(self) -> None:
        self.held = False

    def clear(self) -> tuple[Heard, ...]:
        self.held = False
        if not self._waiting:
            return ()
        self._waiting.clear()
        return (Heard(*self._ids, self._heard_ms),)

    def detach(self) -> bool:
        return True

    def levels(self) -> Sequence[float]:
        return self._levels
