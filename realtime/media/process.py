"""One media worker process, as its gateway holds it."""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic

from engines.launching import liveness
from engines.launching.liveness import Condition, Patience, RealTime, until_lost
from engines.launching.withheld import without_secrets
from engines.messages.framing import FrameError, FrameReader, frame
from realtime.media import messages
from realtime.media.job import MediaFailed, MediaJob
from realtime.media.messages import FailureKind

log = logging.getLogger(__name__)

START_LIMIT_S = 15.0


class MediaProcess:
    """Owns the process, the socket to it and the jobs inside it. `listen` must be running for anything to arrive.

    Implements engines.launching.liveness.Watched: it says Alive by itself, and is called while it has jobs.
    """

    limit_bytes = float("inf")
    resident_bytes = 0
    may_be_slow = False

    def __init__(
        self, process: asyncio.subprocess.Process, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], patience: Patience
    ) -> None:
        self.heard_at = monotonic()
        self.answered = asyncio.Event()
        self.called = asyncio.Event()
        self._process = process
        self._frames = FrameReader(streams[0], messages.to_gateway_decoder)
        self._writer = streams[1]
        self._patience = patience
        self._jobs: dict[int, MediaJob] = {}
        self._next_number = 0
        self._lost = ""

    @classmethod
    async def start(cls, command: Sequence[str], patience: Patience) -> "MediaProcess":
        ours, theirs = socket.socketpair()
        with theirs:
            # Its own process group: a Ctrl-C in the terminal is the gateway's to handle.
            process = await asyncio.create_subprocess_exec(
                *command, stdin=theirs.fileno(), env=without_secrets(), start_new_session=True
            )
        return cls(process, await asyncio.open_connection(sock=ours), patience)

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
        self.called.set()
        self._send(opening)
        return job

    def ask(self) -> None:
        self.answered.clear()

    def condition(self) -> Condition:
        return liveness.condition(self.pid)

    async def listen(self) -> str:
        """Bring what the worker says to its jobs, until it is lost; then fail them all. Returns why it was lost."""
        ends = [asyncio.create_task(self._bring()), asyncio.create_task(self._watch())]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            self._lost = done.pop().result()
        finally:
            for end in ends:
                end.cancel()
            await asyncio.wait(ends)
            self._lost = self._lost or "the media worker was stopped"
            for number, job in tuple(self._jobs.items()):
                job.receive(messages.Failed(number, FailureKind.LOST, self._lost))
            self._jobs.clear()
        return self._lost

    async def _bring(self) -> str:
        try:
            while (message := await self._frames.next()) is not None:
                self.heard_at = monotonic()
                self.answered.set()
                self._dispatch(message)
        except (FrameError, OSError) as cut:
            return f"the media worker was lost: {cut}"
        return "the media worker died"

    async def _watch(self) -> str:
        return f"the media worker was lost: {await until_lost(self, self._patience, RealTime())}"

    def _dispatch(self, message: messages.ToGateway) -> None:
        if isinstance(message, messages.Ready | messages.Alive):
            return
        job = self._jobs.get(message.job)
        if job is None:
            return
        job.receive(message)
        if job.ended:
            del self._jobs[message.job]
            if not self._jobs:
                self.called.clear()

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
