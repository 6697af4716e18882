"""Whether somebody begins to make a sound, told by the loudness of the microphone alone.

Voice activity hears a vowel within a window or two, but not the "s" before it: that takes it 140–180 ms. Who is loud for a moment
may be about to speak, so an agent falls silent for that moment, until voice activity says what it was.
"""

from collections import deque

ROOM_WINDOWS = 60
"""Two seconds: what has been as loud for longer is the room."""
ROOM_SHARE = 0.3
"""Of them are the room at most, where somebody speaks or an agent is fed back."""
QUIET_ROOM_DB = -70.0
AUDIBLE_DB = -45.0
"""Nobody speaks into a microphone more softly than this and is understood."""
LOUD_WINDOWS = 2
"""In a row: a click is one. Of 26 voices, at six phases of the window each, half were loud after 47 ms and all after 76 ms; voice
activity alone heard half after 57 ms, 95 of 100 after 170 ms and the last after 218 ms."""
LONGEST_WINDOWS = 6
"""After its first two: a sound that is no voice by then is none. With the three windows in which an onset is denied the agent was
held for a quarter of a second."""
OVER_WINDOWS = 3
"""So quiet for so long: what comes then is another sound. Claps and keys are closer together."""
DISTRUST_WINDOWS = 160
"""After a sound that was no voice, loudness tells nothing for five seconds: somebody types, or a street passes by."""


class LoudOnset:
    """Is told of every window of the microphone in turn."""

    def __init__(self, above_room_db: float) -> None:
        self._above_room_db = above_room_db
        self._room: deque[float] = deque([QUIET_ROOM_DB], ROOM_WINDOWS)
        self._loud = 0
        self._quiet = 0
        self._told = 0
        self._distrust = 0

    def window(self, level_db: float) -> bool:
        """Whether a sound has just begun here, at this level in dBFS."""
        room_db = max(sorted(self._room)[int(len(self._room) * ROOM_SHARE)], QUIET_ROOM_DB)
        self._room.append(level_db)
        self._distrust = max(self._distrust - 1, 0)
        is_loud = self._above_room_db > 0 and level_db >= max(room_db + self._above_room_db, AUDIBLE_DB)
        self._loud, self._quiet = (self._loud + 1, 0) if is_loud else (0, self._quiet + 1)
        if self._quiet >= OVER_WINDOWS:
            self._told = 0
        elif self._told or self._loud >= LOUD_WINDOWS:
            self._told += 1
        return self._loud >= LOUD_WINDOWS and self._told <= LONGEST_WINDOWS and not self._distrust

    def distrust(self) -> None:
        """What it told of last was no voice."""
        self._distrust = DISTRUST_WINDOWS
