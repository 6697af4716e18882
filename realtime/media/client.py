"""Encoding and decoding for the gateway: jobs in a media worker that is started, watched and started again."""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from engines.launching.liveness import Patience
from engines.logs import LogStyle
from realtime.media import messages
from realtime.media.call_codecs import CallCodec, Voice
from realtime.media.formats import AudioFormat
from realtime.media.job import MediaFailed, MediaJob
from realtime.media.messages import HEARTBEAT_S, FailureKind
from realtime.media.process import MediaProcess

log = logging.getLogger(__name__)

MAX_ENCODES = 128
"""Jobs beyond these are refused: each holds a thread and a codec, a decode also its upload of up to 25 MiB."""
MAX_DECODES = 32
MAX_LISTENS = 64
MAX_SPEAKS = 128
"""Two for each call: an answer may begin while the last one is being cancelled."""
PATIENCE = Patience(hang_s=10 * HEARTBEAT_S)
"""With a worker that says nothing, not even Alive: then it gets killed."""
BACK_OFF_S = (0.0, 0.25, 0.5, 1.0, 2.0, 5.0)
"""Before the next start, by how many starts in a row have failed; the last one repeats."""


def media_command(name: str, logs: LogStyle, *, first: bool = False) -> tuple[str, ...]:
    """Of a worker that operators know by `name`. `first`: its live jobs ask to run before everything else."""
    return (sys.executable, "-m", "realtime.media.worker", name, logs.level, logs.format, *(["first"] if first else []))


class MediaClient:
    """Use as `async with MediaClient() as media`; entering returns at once, jobs wait until the worker is ready."""

    def __init__(
        self,
        command: Sequence[str] = media_command("media", LogStyle()),
        *,
        on_restart: Callable[[], None] = lambda: None,
        patience: Patience = PATIENCE,
        back_off_s: Sequence[float] = BACK_OFF_S,
    ) -> None:
        self._command = command
        self._on_restart = on_restart
        self._patience = patience
        self._back_off_s = back_off_s
        self._process: MediaProcess | None = None
        self._settled = asyncio.Event()
        """Set while it is known whether there is a worker: there is one, or the last start has failed."""
        self._encodes = _Places("encode", MAX_ENCODES)
        self._decodes = _Places("decode", MAX_DECODES)
        self._speaks = _Places("speak", MAX_SPEAKS)
        self._listens = _Places("listen", MAX_LISTENS)
        self._supervisor: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "MediaClient":
        self._supervisor = asyncio.create_task(self._supervise(), name="media supervisor")
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._supervisor is not None:
            self._supervisor.cancel()
            with suppress(asyncio.CancelledError):
                await self._supervisor

    @property
    def pid(self) -> int | None:
        """Of the worker, while there is one."""
        return None if self._process is None else self._process.pid

    def encode(self, format: AudioFormat, rate: int) -> AbstractAsyncContextManager[MediaJob]:
        """A job that takes PCM16 mono at `rate` Hz and gives bytes of `format` as they come. Raises MediaFailed."""
        return self._job(self._encodes, lambda number: messages.Encode(number, format, rate))

    def decode(self, rate: int) -> AbstractAsyncContextManager[MediaJob]:
        """A job that takes an uploaded file and then gives its audio as PCM16 mono at `rate` Hz. Raises MediaFailed."""
        return self._job(self._decodes, lambda number: messages.Decode(number, rate))

    def speak(self, voice: Voice = Voice()) -> AbstractAsyncContextManager[MediaJob]:  # noqa: B008 (a frozen value)
        """A job that takes the PCM16 mono at 24 kHz of one answer; each piece that it gives is one packet of 20 ms.

        A listener hears each sample up to 6.5 ms late; `finish` adds the silence that brings the last one out.
        Raises MediaFailed.
        """
        return self._job(self._speaks, lambda number: messages.Speak(number, voice))

    def listen(self, codec: CallCodec = "opus") -> AbstractAsyncContextManager[MediaJob]:
        """A job that takes the packets of one call, one a write, and gives their sound at once as PCM16 mono at 24 kHz.

        Opus packets may hold 2.5 to 120 ms, mono or stereo. `lose` and `pause` stand for what did not come: the sound of what was
        lost comes with the next packet, from the copy of it in there or as a guess; so does that of a packet that is damaged.
        The sound is as long as what was written. Raises MediaFailed.
        """
        return self._job(self._listens, lambda number: messages.Listen(number, codec))

    @asynccontextmanager
    async def _job(self, places: "_Places", order: Callable[[int], messages.Order]) -> AsyncGenerator[MediaJob]:
        with places:
            job = (await self._worker()).open(order)
            try:
                yield job
            finally:
                job.cancel()

    async def _worker(self) -> MediaProcess:
        await self._settled.wait()
        if self._process is None:
            raise MediaFailed(FailureKind.LOST, "the media worker is not running; the server's log tells why")
        return self._process

    async def _supervise(self) -> None:
        failures = 0
        while True:
            await asyncio.sleep(self._back_off_s[min(failures, len(self._back_off_s) - 1)])
            try:
                async with _started(self._command, self._patience) as process:
                    await process.ready()
                    failures = 0
                    log.error("%s; starting it again", await self._serve_jobs(process))
                    self._on_restart()
            except MediaFailed as failed:
                log.error("%s", failed)
                self._settled.set()
            failures += 1

    async def _serve_jobs(self, process: MediaProcess) -> str:
        """Until the worker is lost. Returns why."""
        self._process = process
        self._settled.set()
        try:
            return await process.listen()
        finally:
            self._settled.clear()
            self._process = None


@asynccontextmanager
async def _started(command: Sequence[str], patience: Patience) -> AsyncGenerator[MediaProcess]:
    """A process that is stopped at the end, also when the end comes in the middle of its start."""
    starting = asyncio.create_task(MediaProcess.start(command, patience))
    try:
        yield await asyncio.shield(starting)
    finally:
        await (await starting).stop()


class _Places:
    """How many jobs of a kind may be open at once (policy: refuse)."""

    def __init__(self, kind: str, places: int) -> None:
        self._kind = kind
        self._places = places
        self._taken = 0

    def __enter__(self) -> None:
        if self._taken == self._places:
            raise MediaFailed(FailureKind.BUSY, f"{self._taken} {self._kind} jobs are open, which is the limit; try again later")
        self._taken += 1

    def __exit__(self, *exc: object) -> None:
        self._taken -= 1
