"""A gateway as a worker sees it: one connection, driven message by message."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

from engines.chunks import Chunk
from engines.connectors.contents import Content, Inline
from engines.messages import to_gateway, to_worker
from engines.messages.framing import FrameReader, frame
from engines.messages.to_gateway import Emit, Failed, Report, StageState, StatusChanged, ToGateway, Welcome
from engines.messages.to_worker import Grant, Hello, Probe, Push, ServiceClass, Submit, ToWorker
from engines.parameters import Activity, Parameters
from engines.payloads import Payload

M = TypeVar("M", bound=ToGateway)


def payload(chunk: Chunk) -> Payload:
    """Of a chunk that travels inline."""
    assert isinstance(chunk.content, Inline)
    return chunk.content.payload


class FakeGateway:
    """Messages that a test has not asked for yet wait in `unread`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.unread: list[ToGateway] = []
        self._frames = FrameReader(reader, to_gateway.decoder)

    @classmethod
    async def connect(cls, path: Path) -> "FakeGateway":
        return cls(*await asyncio.open_unix_connection(str(path)))

    @classmethod
    async def greet(cls, path: Path, server: str = "gateway") -> "FakeGateway":
        """Connected, welcomed, and every stage has left LOADING."""
        gateway = await cls.connect(path)
        gateway.send(Hello(server))
        welcome = await gateway.next(Welcome)
        for _ in [stage for stage in welcome.stages if stage.state is StageState.LOADING]:
            await gateway.next(StatusChanged)
        return gateway

    def send(self, *messages: ToWorker) -> None:
        for message in messages:
            self.writer.write(frame(to_worker.encoder.encode(message)))

    def submit(
        self,
        request_id: str,
        stage: str = "echo",
        *,
        parameters: Parameters | None = None,
        upstreams: tuple[str, ...] = (),
        window: int = 64,
        window_bytes: int = 1 << 20,
        wait_ms: float = 0.0,
        service_class: ServiceClass = ServiceClass.INTERACTIVE,
        pipeline: str = "test",
        connector: str = "inline",
        deadline_ms: float | None = None,
    ) -> None:
        chosen = parameters if parameters is not None else Activity()
        who = (7, 3, "session", service_class)
        limits = (window, window_bytes, wait_ms, connector, deadline_ms)
        self.send(Submit(request_id, pipeline, stage, upstreams, *who, chosen, *limits))

    def push(
        self, request_id: str, *texts: str, stage: str = "echo", source: str = "", final: bool = False, key: str = ""
    ) -> None:
        """One push a text; with `final` the last one ends the input, or an empty one does when there is no text."""
        payloads = [Payload(text, attributes={"key": key} if key else {}) for text in texts] or [Payload()]
        for position, payload in enumerate(payloads, start=1):
            self.send(Push(request_id, stage, source, Inline(payload), final and position == len(payloads)))

    def hand(self, request_id: str, *contents: Content, stage: str = "echo", source: str = "", final: bool = False) -> None:
        """One push a content, wherever its payload lies; with `final` the last one ends the input."""
        for position, content in enumerate(contents, start=1):
            self.send(Push(request_id, stage, source, content, final and position == len(contents)))

    def grant(self, request_id: str, count: int = 1, stage: str = "echo") -> None:
        self.send(Grant(request_id, stage, count))

    async def next(self, kind: type[M], where: Callable[[M], bool] = lambda _: True) -> M:
        """The oldest unread message of this kind; the others stay unread."""
        return cast("M", await self._first(lambda message: isinstance(message, kind) and where(message)))

    async def chunk(self, request_id: str, stage: str = "") -> Chunk:
        """The next of this request, of any stage unless one is named. Its failure is raised."""

        def of_it(message: ToGateway) -> bool:
            match message:
                case Emit(chunk):
                    return chunk.request_id == request_id and stage in ("", chunk.stage)
                case Failed():
                    return message.request_id == request_id and stage in ("", message.stage)
                case _:
                    return False

        message = await self._first(of_it)
        assert isinstance(message, Emit), message
        return message.chunk

    async def chunks(self, request_id: str) -> list[Chunk]:
        """All that are to come, to the final one."""
        chunks = [await self.chunk(request_id)]
        while not chunks[-1].final:
            chunks.append(await self.chunk(request_id))
        return chunks

    async def texts(self, request_id: str) -> list[str]:
        return [payload(chunk).text for chunk in await self.chunks(request_id)]

    async def heard(self) -> Report:
        """Once the worker has handled everything sent so far: messages are handled in order."""
        self.send(Probe())
        return await self.next(Report)

    async def idle(self) -> Report:
        """Once the worker's engines hold nothing, of nobody: a model has closed a little before its slot is free."""
        while True:
            report = await self.heard()
            if all(stage.active == 0 for stage in report.stages):
                return report

    async def hung_up(self) -> None:
        """Returns when the worker has closed the connection."""
        while await self._frames.next() is not None:
            pass

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    async def _first(self, wanted: Callable[[ToGateway], bool]) -> ToGateway:
        for waiting in self.unread:
            if wanted(waiting):
                self.unread.remove(waiting)
                return waiting
        while True:
            message = await self._frames.next()
            if message is None:
                raise ConnectionError("the worker hung up")
            if wanted(message):
                return message
            self.unread.append(message)
