"""A worker in this process: the real protocol over a real Unix socket, scripted stages, scripted faults.

A script is a coroutine function that gets a `FakeStage`, the life of one stage of one request. Without a script a stage
echoes: each input comes out as one chunk.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from engines.chunks import Chunk, ChunkTiming
from engines.connectors.contents import Inline
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

EMPTY = Payload()


class FakeStage:
    """One stage of one request; inputs are taken and chunks emitted under the credit of the real protocol."""

    def __init__(self, submit: Submit, send: Callable[[ToGateway], None]) -> None:
        self.submit = submit
        self.credit = submit.window
        self.emitted = 0
        self.pushes: asyncio.Queue[Push] = asyncio.Queue()  # bounded by PUSH_WINDOW, as the gateway keeps it
        self._send = send
        self._granted = asyncio.Event()

    async def take(self) -> Push:
        push = await self.pushes.get()
        self._send(Taken(self.submit.request_id, self.submit.stage, push.source, 1))
        return push

    async def emit(self, payload: Payload = EMPTY, *, final: bool = False) -> None:
        while self.credit == 0:
            self._granted.clear()
            await self._granted.wait()
        self.credit -= 1
        self.emit_without_credit(payload, final=final)

    def emit_without_credit(self, payload: Payload = EMPTY, *, final: bool = False, seq: int | None = None) -> None:
        submit = self.submit
        chunk = Chunk(
            request_id=submit.request_id,
            fence=submit.fence,
            epoch=submit.epoch,
            stage=submit.stage,
            seq=self.emitted if seq is None else seq,
            kind="fake",
            content=Inline(payload),
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
        self._granted.set()


Script: TypeAlias = Callable[[FakeStage], Awaitable[None]]


def inline(push: Push) -> Payload:
    assert isinstance(push.content, Inline)
    return push.content.payload


async def echo(stage: FakeStage) -> None:
    final = False
    while not final:
        push = await stage.take()
        final = push.final
        await stage.emit(inline(push), final=final)


class FakeWorker:
    """`submitted`, `aborted`: what it was told. `ignores_aborts`: it never acknowledges them.
    `open`: the stages that run, by request and stage."""

    def __init__(self, socket: Path, stages: Sequence[str], *, name: str = "fake", state: StageState = StageState.READY) -> None:
        self.socket = str(socket)
        self.name = name
        self.scripts: dict[str, Script] = {}
        self.submitted: list[Submit] = []
        self.aborted: list[str] = []
        self.ignores_aborts = False
        self.open: dict[tuple[str, str], FakeStage] = {}
        self._statuses = {stage: StageStatus(stage, state, slots=16) for stage in stages}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> "FakeWorker":
        self._server = await asyncio.start_unix_server(self._serve, self.socket)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self.crash()
        await self._server.wait_closed()

    async def crash(self) -> None:
        """Every connection is cut at once; whatever it worked on is gone."""
        for writer in list(self._writers):
            writer.transport.abort()
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def say(self, raw: bytes) -> None:
        """Put these very bytes on every connection."""
        for writer in self._writers:
            writer.write(raw)

    def become(self, stage: str, state: StageState, note: str = "") -> None:
        self._statuses[stage] = StageStatus(stage, state, 16, note)
        for writer in self._writers:
            self._sender(writer)(StatusChanged(self._statuses[stage]))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that the gateway's messages bring about."""
        async with self._changed:
            await self._changed.wait_for(holds)

    def untaken(self, request_id: str, stage: str) -> int:
        """How many pushes wait in this stage's inbox."""
        here = self.open.get((request_id, stage))
        return here.pushes.qsize() if here else 0

    def stage(self, request_id: str, stage: str) -> FakeStage:
        return self.open[request_id, stage]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        frames = FrameReader(reader, to_worker.decoder)
        try:
            while (message := await frames.next()) is not None:
                self._hear(message, self._sender(writer))
                async with self._changed:
                    self._changed.notify_all()
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _hear(self, message: to_worker.ToWorker, send: Callable[[ToGateway], None]) -> None:
        match message:
            case Hello():
                send(Welcome(self.name, 1, tuple(self._statuses.values())))
            case Submit():
                self._start(message, send)
            case Push():
                if stage := self.open.get((message.request_id, message.stage)):
                    stage.pushes.put_nowait(message)
            case Grant():
                if stage := self.open.get((message.request_id, message.stage)):
                    stage.grant(message.count)
            case Abort(request_id):
                self.aborted.append(request_id)
                if not self.ignores_aborts:
                    self._abort(request_id)
                    send(Aborted(request_id))
            case Probe():
                send(Report((), rss_bytes=len(self.submitted)))

    def _start(self, submit: Submit, send: Callable[[ToGateway], None]) -> None:
        key = submit.request_id, submit.stage
        self.submitted.append(submit)
        self.open[key] = FakeStage(submit, send)
        self._tasks[key] = asyncio.create_task(self._run(key))
        self._tasks[key].add_done_callback(lambda _: self._forget(key))

    async def _run(self, key: tuple[str, str]) -> None:
        await self.scripts.get(key[1], echo)(self.open[key])

    def _forget(self, key: tuple[str, str]) -> None:
        del self.open[key]
        del self._tasks[key]

    def _abort(self, request_id: str) -> None:
        for key, task in list(self._tasks.items()):
            if key[0] == request_id:
                task.cancel()

    def _sender(self, writer: asyncio.StreamWriter) -> Callable[[ToGateway], None]:
        def send(message: ToGateway) -> None:
            with contextlib.suppress(ConnectionError):
                writer.write(frame(to_gateway.encoder.encode(message)))

        return send
