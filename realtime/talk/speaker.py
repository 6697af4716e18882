"""Where the answer goes: out loud through a player of the system, into a WAV file, or both."""

import asyncio
import shutil
import wave
from collections.abc import Mapping
from pathlib import Path

RATE_HZ = 24_000
DEFAULT_FILE = Path("answer.wav")

PLAYERS: Mapping[str, tuple[str, ...]] = {
    "paplay": ("--raw", "--format=s16le", "--rate=24000", "--channels=1"),
    "aplay": ("-q", "-t", "raw", "-f", "S16_LE", "-r", "24000", "-c", "1", "-"),
    "ffplay": ("-nodisp", "-autoexit", "-loglevel", "error", "-f", "s16le", "-ar", "24000", "-ch_layout", "mono", "-i", "-"),
    "pw-play": ("--raw", "--format=s16", "--rate=24000", "--channels=1", "-"),
}
"""Programs that play PCM16 from their standard input, the likeliest first."""


class Speaker:
    """`file` None: nothing is saved unless the player turns out not to work."""

    def __init__(self, player: asyncio.subprocess.Process | None, file: Path | None) -> None:
        self._player = player
        self._file = file
        self._pcm = bytearray()

    def hear(self, pcm: bytes) -> None:
        self._pcm += pcm
        if self._player is not None and self._player.stdin is not None and not self._player.stdin.is_closing():
            self._player.stdin.write(pcm)  # bounded by the length of one answer; waiting here would stop the conversation

    async def finish(self) -> Path | None:
        """Play to the end. Returns the file, where one was written."""
        if self._player is not None and self._player.stdin is not None:
            self._player.stdin.close()
            if await self._player.wait() != 0 and self._file is None:
                self._file = DEFAULT_FILE
        if self._file is None or not self._pcm:
            return None
        with wave.open(str(self._file), "wb") as target:
            target.setnchannels(1)
            target.setsampwidth(2)
            target.setframerate(RATE_HZ)
            target.writeframes(self._pcm)
        return self._file


async def open_speaker(file: Path | None, *, play: bool) -> Speaker:
    found = next(((name, options) for name, options in PLAYERS.items() if shutil.which(name)), None) if play else None
    if found is None:
        return Speaker(None, file or DEFAULT_FILE)
    name, options = found
    quiet = asyncio.subprocess.DEVNULL
    player = await asyncio.create_subprocess_exec(name, *options, stdin=asyncio.subprocess.PIPE, stdout=quiet, stderr=quiet)
    return Speaker(player, file)
