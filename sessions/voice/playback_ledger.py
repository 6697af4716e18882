"""What a client that plays for itself has been given of each answer's sound, and how much of it has been heard."""

import msgspec

from sessions.voice.playout import Heard, Playing

MAX_SOUNDS = 64
"""Items remembered. Overflow policy: the oldest is forgotten, as one that has been heard; nobody plays so many in a row."""


class _Sound(msgspec.Struct):
    """Milliseconds of one item. `played` is where a player in real time would be, `acknowledged` the client's own word."""

    response_id: str
    given: float = 0.0
    played: float = 0.0
    acknowledged: float | None = None
    sending: bool = False
    stopped: bool = False

    @property
    def remaining(self) -> float:
        return 0.0 if self.stopped else self.given - self.played

    @property
    def unfinished(self) -> bool:
        return self.remaining > 0 or (self.sending and not self.stopped)


class PlaybackLedger:
    """Pure: the time comes with each call, in seconds of one monotonic clock.

    The client is taken to play one item after the other, in real time from the moment each sound was given, and to pause when it
    has none. Its player and the way there make it a little later; so does the news that it is to stop.
    """

    def __init__(self) -> None:
        self._sounds: dict[str, _Sound] = {}
        self._as_of_s = 0.0

    def send(self, response_id: str, item_id: str) -> None:
        """Sound of this item is being sent; `give` follows when it is on its way."""
        self._sounds.setdefault(item_id, _Sound(response_id)).sending = True
        if len(self._sounds) > MAX_SOUNDS:
            del self._sounds[next(iter(self._sounds))]

    def give(self, item_id: str, audio_ms: float, now_s: float) -> None:
        """The next `audio_ms` of this item are on their way. Of an item that was stopped they are not played."""
        self._advance(now_s)
        sound = self._sounds.get(item_id)
        if sound is not None:
            sound.sending = False
            sound.given += audio_ms

    def remaining_ms(self, now_s: float) -> float:
        """How long the client still plays what it has."""
        self._advance(now_s)
        return sum(sound.remaining for sound in self._sounds.values())

    def playing(self, now_s: float) -> Playing | None:
        """The item that the client is playing, if any."""
        self._advance(now_s)
        sounding = ((item_id, sound) for item_id, sound in self._sounds.items() if sound.remaining > 0)
        item_id, sound = next(sounding, ("", None))
        return None if sound is None else Playing(item_id, sound.played, self.remaining_ms(now_s))

    def acknowledge(self, item_id: str, audio_ms: int, now_s: float) -> int | None:
        """The client has played so much of this item. Returns what it has played by all it has said: never more than it was
        given, and never less than before. None: it was given nothing of that item."""
        sound = self._sounds.get(item_id)
        if sound is None:
            return None
        self._advance(now_s)
        if audio_ms > 0:
            self._finish_before(sound)
        sound.acknowledged = max(min(float(audio_ms), sound.given), sound.acknowledged or 0.0)
        sound.played = sound.acknowledged
        return round(sound.acknowledged)

    def truncate(self, item_id: str, now_s: float) -> None:
        """The client plays no more of this item."""
        self._advance(now_s)
        if item_id in self._sounds:
            self._sounds[item_id].stopped = True

    def stop(self, now_s: float) -> tuple[Heard, ...]:
        """The client plays no more of what it was given. Returns what was heard of the items not played to their end."""
        self._advance(now_s)
        unfinished = {item_id: sound for item_id, sound in self._sounds.items() if sound.unfinished}
        for sound in unfinished.values():
            sound.stopped = True
        return tuple(_heard(item_id, sound) for item_id, sound in unfinished.items())

    def _finish_before(self, playing: _Sound) -> None:
        for sound in self._sounds.values():
            if sound is playing:
                return
            sound.played = sound.given

    def _advance(self, now_s: float) -> None:
        time_ms = max(now_s - self._as_of_s, 0.0) * 1000
        self._as_of_s = max(now_s, self._as_of_s)
        for sound in self._sounds.values():
            step = min(time_ms, sound.remaining)
            sound.played += step
            time_ms -= step


def _heard(item_id: str, sound: _Sound) -> Heard:
    if sound.acknowledged is not None:
        return Heard(sound.response_id, item_id, round(sound.acknowledged), "acknowledged")
    return Heard(sound.response_id, item_id, int(sound.played), "estimated")
