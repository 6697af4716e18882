"""A worker in this process: the real protocol over a real Unix socket, scripted stages, scripted faults.

A script is a coroutine function that gets a `FakeStage`, the life of one stage of one request. Without a script a stage
echoes: each input comes out as one chunk.

Faults: `crash`; `hang` until `go_on`; `lose_chunk`; `ignores_aborts`; `say` for foreign bytes; delays are a script's own.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from engines.chunks import Chunk, ChunkTiming
from engines.connectors.contents import Inline, Key
from engines.connectors.process import Connectors
from engines.messages import to_gateway, to_worker
from engines.messages.framing import FrameReader, frame
from engines.messages.to_gateway import (
    Aborted,
    Emit,
    ErrorKind,
    Failed,
    Report,
    StageState,
    StageStatus,
    StatusChanged,
    Taken,
    ToGateway,
    Welcome,
)
from engines.messages.to_worker import Abort, Grant, Hello, Probe, Push, Submit
from engines.payloads import Payload
from engines.site import NOWHERE, Site, this_host
from fakes.remote_payloads import RemotePayloads

EMPTY = Payload()


class FakeStage:
    """One stage of one request; inputs are taken and chunks emitted under the credit of the real protocol."""

    def __init__(
        self, submit: Submit, send: Callable[[ToGateway], None], connectors: Connectors, scope: str, going_on: asyncio.Event
    ) -> None:
        self.submit = submit
        self.scope = scope
        self.over = False
        self.loses_next = False
        self._connectors = connectors
        self._going_on = going_on
        self._taken = 0
        self._finals = 0
        self.credit = submit.window
        self.emitted = 0
        self.pushes: asyncio.Queue[Push] = asyncio.Queue()  # bounded by PUSH_WINDOW, as the gateway keeps it
        self._send = send
        self._granted = asyncio.Event()

    @property
    def input_has_ended(self) -> bool:
        """Every upstream has sent its final input, and all of it was taken."""
        return self._finals >= max(1, len(self.submit.upstreams))

    async def take(self) -> Push:
        push = await self.pushes.get()
        await self._going_on.wait()
        self._finals += push.final
        self._send(Taken(self.submit.request_id, self.submit.stage, push.source, 1))
        return push

    def read(self, push: Push) -> Payload:
        """Raises PayloadLost."""
        payload = self._connectors.read(push.content)
        assert payload is not None
        return payload

    async def emit(self, payload: Payload = EMPTY, *, final: bool = False) -> None:
        await self._going_on.wait()
        while self.credit == 0:
            self._granted.clear()
            await self._granted.wait()
        self.credit -= 1
        self.emit_without_credit(payload, final=final)

    def emit_without_credit(
        self,
        payload: Payload = EMPTY,
        *,
        final: bool = False,
        seq: int | None = None,
        fence: int | None = None,
        epoch: int | None = None,
    ) -> None:
        submit = self.submit
        if self.loses_next and not final:
            self.loses_next = False
            self.emitted += 1
            return
        key = Key(self.scope, self.emitted)
        self.over = final
        chunk = Chunk(
            request_id=submit.request_id,
            fence=submit.fence if fence is None else fence,
            epoch=submit.epoch if epoch is None else epoch,
            stage=submit.stage,
            seq=self.emitted if seq is None else seq,
            kind="fake",
            content=self._connectors.named(submit.connector).put(key, payload),
            pts=0.0,
            final=final,
            timing=ChunkTiming(queue_ms=1.0, run_ms=2.0),
        )
        self.emitted += 1
        self._send(Emit(chunk))

    def fail(self, kind: ErrorKind, message: str) -> None:
        self._send(Failed(self.submit.request_id, self.submit.stage, kind, message))

    def grant(self, count: int) -> None:
        self.credit += count
        self._taken += count
        self._connectors.cleanup(self.scope, before=self._taken)
        self._granted.set()

    def drop_payloads(self) -> None:
        self._connectors.cleanup(self.scope)


Script: TypeAlias = Callable[[FakeStage], Awaitable[None]]


def callers_id(wire_id: str) -> str:
    return wire_id.rpartition("~")[0] or wire_id


def inline(push: Push) -> Payload:
    assert isinstance(push.content, Inline)
    return push.content.payload


async def echo(stage: FakeStage) -> None:
    while not stage.input_has_ended:
        push = await stage.take()
        await stage.emit(stage.read(push), final=stage.input_has_ended)


class FakeWorker:
    """`submitted`, `aborted`: what it was told, by the callers' ids. `ignores_aborts`: it never acknowledges them.
    `open`: the stages that run, by request and stage. `arena_bytes`: its shared memory.
    `elsewhere`: it is on another host, and its payloads are fetched with this."""

    def __init__(
        self,
        socket: Path,
        stages: Sequence[str],
        *,
        name: str = "fake",
        state: StageState = StageState.READY,
        arena_bytes: int = 0,
        elsewhere: RemotePayloads | None = None,
    ) -> None:
        self.socket = str(socket)
        self.name = name
        self.scripts: dict[str, Script] = {}
        self.submitted: list[Submit] = []
        self.aborted: list[str] = []
        self.ignores_aborts = False
        self.open: dict[tuple[str, str], FakeStage] = {}
        self.connectors = Connectors(arena_bytes, {elsewhere.name: elsewhere} if elsewhere else None)
        self.site = Site(this_host()) if arena_bytes else NOWHERE
        if elsewhere is not None:
            self.site = Site(name, fetched_by=elsewhere.name)
        self._kept: dict[tuple[str, str], FakeStage] = {}
        """Stages that are over, and whose payloads may still be read."""
        self._going_on = asyncio.Event()
        self._going_on.set()
        self._statuses = {stage: StageStatus(stage, state, slots=16) for stage in stages}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Event()

    async def __aenter__(self) -> "FakeWorker":
        self._server = await asyncio.start_unix_server(self._serve, self.socket)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self.crash()
        await self._server.wait_closed()
        self.connectors.close()

    async def crash(self) -> None:
        """Every connection is cut at once; whatever it worked on is gone."""
        for writer in list(self._writers):
            writer.transport.abort()
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for stage in [*self.open.values(), *self._kept.values()]:
            stage.drop_payloads()
        self._kept.clear()

    def hang(self) -> None:
        """Its scripts stand still before their next message; it goes on hearing and answering."""
        self._going_on.clear()

    def go_on(self) -> None:
        self._going_on.set()

    def lose_chunk(self) -> None:
        """The next chunk of every stage that is open never leaves, unless it is the final one."""
        for stage in self.open.values():
            stage.loses_next = True

    def payloads(self) -> int:
        """How many it still keeps for readers."""
        return sum(self.connectors.holds(stage.scope) for stage in [*self.open.values(), *self._kept.values()])

    def say(self, raw: bytes) -> None:
        """Put these very bytes on every connection."""
        for writer in self._writers:
            writer.write(raw)

    def stop_reading(self) -> None:
        """What is sent to it from now on stays unread, until `read_on`."""
        for transport in self._transports():
            transport.pause_reading()

    def read_on(self) -> None:
        for transport in self._transports():
            transport.resume_reading()

    def _transports(self) -> list[asyncio.Transport]:
        return [writer.transport for writer in self._writers if isinstance(writer.transport, asyncio.Transport)]

    def become(self, stage: str, state: StageState, note: str = "") -> None:
        self._statuses[stage] = StageStatus(stage, state, 16, note)
        for writer in self._writers:
            self._sender(writer)(StatusChanged(self._statuses[stage]))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that messages of either side bring about."""
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    def untaken(self, request_id: str, stage: str) -> int:
        """How many pushes wait in this stage's inbox."""
        here = self.find(request_id, stage)
        return here.pushes.qsize() if here else 0

    def stage(self, request_id: str, stage: str) -> FakeStage:
        found = self.find(request_id, stage)
        assert found is not None
        return found

    def find(self, request_id: str, stage: str) -> FakeStage | None:
        """The newest try of a request, by its caller's id."""
        tries = [here for (wire_id, name), here in self.open.items() if (callers_id(wire_id), name) == (request_id, stage)]
        return tries[-1] if tries else None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        frames = FrameReader(reader, to_worker.decoder)
        try:
            while (message := await frames.next()) is not None:
                self._hear(message, self._sender(writer))
                self._changed.set()
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _hear(self, message: to_worker.ToWorker, send: Callable[[ToGateway], None]) -> None:
        match message:
            case Hello():
                send(Welcome(self.name, 1, tuple(self._statuses.values()), site=self.site))
            case Submit():
                self._start(message, send)
            case Push():
                if stage := self.open.get((message.request_id, message.stage)):
                    stage.pushes.put_nowait(message)
            case Grant():
                key = message.request_id, message.stage
                if stage := self.open.get(key) or self._kept.get(key):
                    stage.grant(message.count)
            case Abort(request_id, keeps):
                self.aborted.append(callers_id(request_id))
                if not self.ignores_aborts:
                    self._abort(request_id, keeps)
                    send(Aborted(request_id))
            case Probe():
                send(Report((), rss_bytes=len(self.submitted)))

    def _start(self, submit: Submit, send: Callable[[ToGateway], None]) -> None:
        key = submit.request_id, submit.stage
        self.submitted.append(msgspec.structs.replace(submit, request_id=callers_id(submit.request_id)))
        scope = f"{self.name}/{submit.request_id}/{submit.fence}/{submit.stage}"
        self.open[key] = FakeStage(submit, send, self.connectors, scope, self._going_on)
        self._tasks[key] = asyncio.create_task(self._run(key))
        self._tasks[key].add_done_callback(lambda _: self._forget(key))

    async def _run(self, key: tuple[str, str]) -> None:
        await self.scripts.get(key[1], echo)(self.open[key])

    def _forget(self, key: tuple[str, str]) -> None:
        self._changed.set()
        stage = self.open.pop(key)
        if stage.over:
            self._kept[key] = stage
        else:
            stage.drop_payloads()
        del self._tasks[key]

    def _abort(self, request_id: str, keeps: tuple[str, ...]) -> None:
        for key, task in list(self._tasks.items()):
            if key[0] == request_id:
                task.cancel()
        for key in [key for key in self._kept if key[0] == request_id and key[1] not in keeps]:
            self._kept.pop(key).drop_payloads()

    def _sender(self, writer: asyncio.StreamWriter) -> Callable[[ToGateway], None]:
        def send(message: ToGateway) -> None:
            self._changed.set()
            with contextlib.suppress(ConnectionError):
                writer.write(frame(to_gateway.encoder.encode(message)))

        return send
