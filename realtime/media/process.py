"""One media worker process, as its gateway holds it."""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from engines.messages.framing import FrameError, FrameReader, frame
from realtime.media import messages
from realtime.media.job import MediaFailed, MediaJob
from realtime.media.messages import FailureKind

log = logging.getLogger(__name__)

START_LIMIT_S = 15.0


class MediaProcess:
    """Owns the process, the socket to it and the jobs inside it. `listen` must be running for anything to arrive."""

    def __init__(
        self, process: asyncio.subprocess.Process, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], silence_s: float
    ) -> None:
        self._process = process
        self._frames = FrameReader(streams[0], messages.to_gateway_decoder)
        self._writer = streams[1]
        self._silence_s = silence_s
        self._jobs: dict[int, MediaJob] = {}
        self._next_number = 0
        self._lost = ""

    @classmethod
    async def start(cls, command: Sequence[str], silence_s: float) -> "MediaProcess":
        ours, theirs = socket.socketpair()
        with theirs:
            # Its own process group: a Ctrl-C in the terminal is the gateway's to handle.
            process = await asyncio.create_subprocess_exec(*command, stdin=theirs.fileno(), start_new_session=True)
        return cls(process, await asyncio.open_connection(sock=ours), silence_s)

    async def ready(self) -> None:
        """Wait for the worker's first word. Raises MediaFailed (lost)."""
        try:
            async with asyncio.timeout(START_LIMIT_S):
                first = await self._frames.next()
        except (FrameError, TimeoutError, OSError) as failed:
            raise MediaFailed(FailureKind.LOST, f"the media worker does not start: {failed!r}") from failed
        if not isinstance(first, messages.Ready):
            raise MediaFailed(FailureKind.LOST, "the media worker does not start: it ended at once")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def jobs(self) -> int:
        return len(self._jobs)

    def open(self, order: Callable[[int], messages.Order]) -> MediaJob:
        """A new job; `order` gets its number. Raises MediaFailed (lost)."""
        if self._lost:
            raise MediaFailed(FailureKind.LOST, self._lost)
        self._next_number += 1
        opening = order(self._next_number)
        job = self._jobs[opening.job] = MediaJob(opening.job, opening.windows, self._send)
        self._send(opening)
        return job

    async def listen(self) -> str:
        """Bring what the worker says to its jobs, until it is lost; then fail them all. Returns why it was lost."""
        try:
            self._lost = await self._bring()
        finally:
            self._lost = self._lost or "the media worker was stopped"
            for number, job in tuple(self._jobs.items()):
                job.receive(messages.Failed(number, FailureKind.LOST, self._lost))
            self._jobs.clear()
        return self._lost

    async def _bring(self) -> str:
        try:
            while (message := await self._next()) is not None:
                self._dispatch(message)
        except TimeoutError:
            return f"the media worker has been silent for {self._silence_s:g} s"
        except (FrameError, OSError) as cut:
            return f"the media worker was lost: {cut}"
        return "the media worker died"

    async def _next(self) -> messages.ToGateway | None:
        async with asyncio.timeout(self._silence_s):
            return await self._frames.next()

    def _dispatch(self, message: messages.ToGateway) -> None:
        if isinstance(message, messages.Ready | messages.Alive):
            return
        job = self._jobs.get(message.job)
        if job is None:
            return
        job.receive(message)
        if job.ended:
            del self._jobs[message.job]

    def _send(self, message: messages.ToWorker) -> None:
        """What may wait in the socket's buffer is bounded by the windows of the open jobs."""
        if not self._writer.is_closing():
            self._writer.write(frame(messages.encoder.encode(message)))

    async def stop(self) -> None:
        """It has nothing to save, so it need not be asked."""
        self._writer.close()
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
