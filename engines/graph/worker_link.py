"""One connection from this gateway to one worker."""

import asyncio
import socket
import time
from collections import deque
from typing import Protocol

from engines.messages import to_gateway, to_worker
from engines.messages.connection import Connection
from engines.messages.framing import FrameError
from engines.messages.to_gateway import Report, StageStatus, StatusChanged, ToGateway, Welcome
from engines.messages.to_worker import PROTOCOL, Hello, Probe, ToWorker
from engines.site import NOWHERE

OUTBOX_LIMIT_BYTES = 256 << 20
"""Bytes a worker may leave unread. Credits keep it far below; a worker beyond it is hung and is given up as lost."""


class Receiver(Protocol):
    """Who hears what the workers say. It answers at once: it is called while the connection is read."""

    def received(self, link: "WorkerLink", message: ToGateway) -> None: ...

    def lost(self, link: "WorkerLink") -> None:
        """The connection has ended; nothing more will come, nothing more can be sent."""
        ...


class WorkerLink:
    """Made by `connect`; whoever owns it runs `run` to its end.

    `stages` holds the newest status of each stage. `heard_at` is when the worker said something last (time.monotonic), `called`
    is set while requests are open there, `answered` once it has answered the newest question; `resident_bytes` is what it held
    then, and `fault` what was wrong with its connectors.
    """

    def __init__(self) -> None:
        self.worker = ""
        self.pid = 0
        self.site = NOWHERE
        self.stages: dict[str, StageStatus] = {}
        self.heard_at = time.monotonic()
        self.called = asyncio.Event()
        self.answered = asyncio.Event()
        self.resident_bytes = 0
        self.fault = ""
        self._open = 0
        self._connection = Connection(to_gateway.decoder, to_worker.encoder, self)
        self._receiver: Receiver | None = None
        self._lost = False
        loop = asyncio.get_running_loop()
        self._welcomed: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[Exception | None] = loop.create_future()
        # Bounded by its askers: each waits for its own answer, and Probe is answered in order.
        self._reports: deque[asyncio.Future[Report] | None] = deque()

    @classmethod
    async def connect(cls, path: str, server: str) -> "WorkerLink":
        """To a worker on this host; waits for its Welcome. Raises OSError, FrameError when what answers is no worker of ours."""
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        opened.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(opened, path)
        except BaseException:
            opened.close()
            raise
        return await cls.over(opened, server)

    @classmethod
    async def over(cls, opened: socket.socket, server: str) -> "WorkerLink":
        """The same over a connected socket, which is the link's from now on."""
        link = cls()
        await asyncio.get_running_loop().create_connection(lambda: link._connection, sock=opened)
        try:
            link.send(Hello(server))
            await link._welcomed
        except BaseException:
            link.close()
            raise
        return link

    async def run(self, receiver: Receiver) -> None:
        """Pass every message to `receiver` until the connection ends. Raises FrameError when the worker sends nonsense, another
        OSError when it is given up or out of reach, and what `receiver` raised."""
        self._receiver = receiver
        self._connection.release()
        try:
            reason = await self._ended
        finally:
            self.close()
            self._lose()
        # Killed in the middle of a write: an end like any other.
        if reason is not None and not isinstance(reason, ConnectionResetError | BrokenPipeError):
            raise reason

    @property
    def is_lost(self) -> bool:
        return self._lost

    def send(self, message: ToWorker) -> None:
        """Queue a message; what is sent after the loss of the connection is dropped. Raises FrameTooLarge."""
        self._connection.send(message)
        if self._connection.unread_bytes > OUTBOX_LIMIT_BYTES:
            self._connection.close(ConnectionAbortedError(f"worker {self.worker!r} left {OUTBOX_LIMIT_BYTES} bytes unread"))

    @property
    def has_room(self) -> bool:
        return self._connection.has_room

    async def room(self) -> None:
        """Wait until the worker has read most of what was sent (policy of the outbox towards callers: block)."""
        await self._connection.room()

    async def report(self) -> Report:
        """Raises ConnectionError when the worker is lost before it answers."""
        if self._lost:
            raise ConnectionResetError(f"worker {self.worker!r} is gone")
        answer: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._reports.append(answer)
        self.send(Probe())
        return await answer

    def ask(self) -> None:
        """For any answer: it sets `answered`."""
        self.answered.clear()
        self._reports.append(None)
        self.send(Probe())

    def opened(self) -> None:
        """One stage of a request is open there, until `ended`."""
        self._open += 1
        self.called.set()

    def ended(self) -> None:
        self._open -= 1
        if not self._open:
            self.called.clear()

    def close(self) -> None:
        self._connection.close()

    # what the connection calls

    def received(self, message: ToGateway) -> None:
        self.heard_at = time.monotonic()
        if self._receiver is None:
            self._greeted(message)
            return
        match message:
            case StatusChanged(status):
                self.stages[status.stage] = status
            case Report():
                self._answer(message)
            case _:
                pass
        self._receiver.received(self, message)

    def lost(self, reason: Exception | None) -> None:
        self._lose()
        if not self._ended.done():
            self._ended.set_result(reason)
        if not self._welcomed.done():
            self._welcomed.set_exception(reason or FrameError(f"expected a Welcome with protocol {PROTOCOL}, got nothing"))

    def _greeted(self, welcome: ToGateway) -> None:
        if not isinstance(welcome, Welcome) or welcome.protocol != PROTOCOL:
            raise FrameError(f"expected a Welcome with protocol {PROTOCOL}, got {welcome!r}")
        self.worker, self.pid, self.site = welcome.worker, welcome.pid, welcome.site
        self.stages = {status.stage: status for status in welcome.stages}
        self._connection.hold()  # what comes next waits for the receiver
        if not self._welcomed.done():
            self._welcomed.set_result(None)

    def _answer(self, report: Report) -> None:
        self.resident_bytes, self.fault = report.rss_bytes, report.fault
        self.answered.set()
        answer = self._reports.popleft() if self._reports else None
        if answer and not answer.done():
            answer.set_result(report)

    def _lose(self) -> None:
        self._lost = True
        while self._reports:
            if (answer := self._reports.popleft()) and not answer.done():
                answer.set_exception(ConnectionResetError(f"worker {self.worker!r} is gone"))
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.lost(self)
