"""Where the answer goes: out loud, into a WAV file, or both."""

import wave
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from realtime.talk.player import RATE_HZ, Player, found_player

DEFAULT_FILE = Path("answer.wav")


class CannotSave(Exception):
    """The answer's file cannot be written; the message is one sentence."""


class Speaker:
    """`file` None: nothing is saved unless the player turns out not to work."""

    def __init__(self, player: Player | None, file: Path | None) -> None:
        self._player = player
        self._file = file
        self._pcm = bytearray()

    def hear(self, pcm: bytes) -> None:
        self._pcm += pcm
        if self._player is not None:
            self._player.play(pcm)

    def played_ms(self) -> int | None:
        """None where nothing plays."""
        return None if self._player is None else self._player.played_ms()

    async def finish(self) -> str:
        """Play to the end and save. Returns what became of the answer's sound. Raises CannotSave."""
        played = "" if self._player is None else await self._played(self._player)
        if not self._pcm:
            return "the answer has no sound"
        if self._file is None:
            return played
        _save(self._file, bytes(self._pcm))
        return f"{played}; saved the answer to {self._file}".removeprefix("; ")

    async def _played(self, player: Player) -> str:
        fault = await player.finish()
        if not fault:
            return f"played by {player.name}"
        self._file = self._file or DEFAULT_FILE
        return f"{player.name} may not have played it ({fault})"


@asynccontextmanager
async def open_speaker(file: Path | None, *, play: bool) -> AsyncGenerator[Speaker]:
    """Raises CannotSave, before anything is said, for a file that nobody could write."""
    if file is not None:
        _check_writable(file)
    if not play:
        yield Speaker(None, file or DEFAULT_FILE)
        return
    async with found_player() as player:
        yield Speaker(player, file or (DEFAULT_FILE if player is None else None))


def _check_writable(file: Path) -> None:
    is_new = not file.exists()
    try:
        file.open("ab").close()
    except OSError as wrong:
        raise _cannot_save(file, wrong) from wrong
    if is_new:
        file.unlink()


def _save(file: Path, pcm: bytes) -> None:
    try:
        with file.open("wb") as target, wave.open(target, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(RATE_HZ)
            sound.setnframes(len(pcm) // 2)  # or it would seek back to write the length, which a pipe cannot
            sound.writeframesraw(pcm)
    except OSError as wrong:
        raise _cannot_save(file, wrong) from wrong


def _cannot_save(file: Path, wrong: OSError) -> CannotSave:
    return CannotSave(f"cannot write {file} ({wrong.strerror}): name another file with --out")
