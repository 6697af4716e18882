"""A program of this system that plays PCM16 from its standard input."""

import asyncio
import shutil
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

RATE_HZ = 24_000
PLAYERS: Mapping[str, tuple[str, ...]] = {
    "paplay": ("--raw", "--format=s16le", "--rate=24000", "--channels=1"),
    "aplay": ("-q", "-t", "raw", "-f", "S16_LE", "-r", "24000", "-c", "1", "-"),
    "ffplay": ("-nodisp", "-autoexit", "-loglevel", "error", "-f", "s16le", "-ar", "24000", "-ch_layout", "mono", "-i", "-"),
    "pw-play": ("--raw", "--format=s16", "--rate=24000", "--channels=1", "-"),
}
"""The likeliest first."""
LEAST_SHARE = 0.5
"""A player that is done in less than this share of the sound's length has not played it."""


class Player:
    def __init__(self, name: str, process: asyncio.subprocess.Process, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._process = process
        self._clock = clock
        self._started: float | None = None
        self._bytes = 0

    def play(self, pcm: bytes) -> None:
        if self._started is None:
            self._started = self._clock()
        self._bytes += len(pcm)
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(pcm)  # bounded by the length of one answer; waiting here would stop the conversation

    def played_ms(self) -> int:
        """As far as it can have come: no player plays faster than the clock goes."""
        if self._started is None:
            return 0
        return int(min(self._bytes / 2 / RATE_HZ, self._clock() - self._started) * 1000)

    async def finish(self) -> str:
        """Play to the end. Returns why nothing may have been heard; empty when all is well.

        The exit code does not tell: without a sound card ffplay complains, plays nothing and exits with 0.
        """
        if self._process.stdin is not None:
            self._process.stdin.close()
        said = b"" if self._process.stderr is None else await self._process.stderr.read()
        code = await self._process.wait()
        if complaint := said.decode(errors="replace").strip():
            return "; ".join(complaint.splitlines()[-2:])
        if code != 0:
            return f"exit code {code}"
        seconds = self._bytes / 2 / RATE_HZ
        if self._started is not None and self._clock() - self._started < seconds * LEAST_SHARE:
            return f"it was done too soon for {seconds:.1f} s of sound"
        return ""

    def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


@asynccontextmanager
async def found_player() -> AsyncGenerator[Player | None]:
    """The first that is here, stopped at the end when it still plays then."""
    found = next((name for name in PLAYERS if shutil.which(name)), None)
    if found is None:
        yield None
        return
    process = await asyncio.create_subprocess_exec(found, *PLAYERS[found], stdin=PIPE, stdout=DEVNULL, stderr=PIPE)
    player = Player(found, process)
    try:
        yield player
    finally:
        player.stop()
        await process.wait()
