"""One connection from this gateway to one worker."""

import asyncio
import contextlib
from collections import deque
from typing import Protocol

from engines.messages import to_gateway, to_worker
from engines.messages.framing import FrameError, FrameReader, frame
from engines.messages.to_gateway import Report, StageStatus, StatusChanged, ToGateway, Welcome
from engines.messages.to_worker import PROTOCOL, Hello, Probe, ToWorker

OUTBOX_LIMIT_BYTES = 256 << 20
"""Bytes a worker may leave unread. Credits keep it far below; a worker beyond it is hung and is given up as lost."""


class Receiver(Protocol):
    """Who hears what the workers say. It answers at once: it runs on the task that reads the connection."""

    def received(self, link: "WorkerLink", message: ToGateway) -> None: ...

    def lost(self, link: "WorkerLink") -> None:
        """The connection has ended; nothing more will come, nothing more can be sent."""
        ...


class WorkerLink:
    """Made by `connect`; whoever owns it runs `run` to its end.

    `stages` holds the newest status of each stage.
    """

    def __init__(self, frames: FrameReader[ToGateway], writer: asyncio.StreamWriter, welcome: Welcome) -> None:
        self.worker = welcome.worker
        self.pid = welcome.pid
        self.stages: dict[str, StageStatus] = {status.stage: status for status in welcome.stages}
        self._frames = frames
        self._writer = writer
        self._lost = False
        # Bounded by its askers: each waits for its own answer, and Probe is answered in order.
        self._reports: deque[asyncio.Future[Report]] = deque()

    @classmethod
    async def connect(cls, socket: str, server: str) -> "WorkerLink":
        """Waits for the worker's Welcome. Raises OSError, and FrameError when what answers is no worker of ours."""
        reader, writer = await asyncio.open_unix_connection(socket)
        frames = FrameReader(reader, to_gateway.decoder)
        try:
            writer.write(frame(to_worker.encoder.encode(Hello(server))))
            welcome = await frames.next()
            if not isinstance(welcome, Welcome) or welcome.protocol != PROTOCOL:
                raise FrameError(f"expected a Welcome with protocol {PROTOCOL} from {socket}, got {welcome!r}")
        except BaseException:
            writer.close()
            raise
        return cls(frames, writer, welcome)

    async def run(self, receiver: Receiver) -> None:
        """Pass every message to `receiver` until the connection ends. Raises FrameError when the worker sends nonsense."""
        try:
            while (message := await self._frames.next()) is not None:
                match message:
                    case StatusChanged(status):
                        self.stages[status.stage] = status
                    case Report():
                        self._answer(message)
                    case _:
                        pass
                receiver.received(self, message)
        except FrameError:
            raise
        except ConnectionError:
            pass  # killed in the middle of a read or of our write: an end like any other
        finally:
            self._lose()
            receiver.lost(self)

    @property
    def is_lost(self) -> bool:
        return self._lost

    def send(self, message: ToWorker) -> None:
        """Queue a message; what is sent after the loss of the connection is dropped. Raises FrameTooLarge."""
        framed = frame(to_worker.encoder.encode(message))
        if self._lost:
            return
        self._writer.write(framed)
        if self._writer.transport.get_write_buffer_size() > OUTBOX_LIMIT_BYTES:
            self._writer.transport.abort()

    async def room(self) -> None:
        """Wait until the worker has read most of what was sent (policy of the outbox towards callers: block)."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def report(self) -> Report:
        """Raises ConnectionError when the worker is lost before it answers."""
        if self._lost:
            raise ConnectionResetError(f"worker {self.worker!r} is gone")
        answer: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._reports.append(answer)
        self.send(Probe())
        return await answer

    def close(self) -> None:
        self._writer.close()

    def _answer(self, report: Report) -> None:
        if self._reports and not (answer := self._reports.popleft()).done():
            answer.set_result(report)

    def _lose(self) -> None:
        self._lost = True
        self._writer.close()
        for answer in self._reports:
            if not answer.done():
                answer.set_exception(ConnectionResetError(f"worker {self.worker!r} is gone"))
        self._reports.clear()
