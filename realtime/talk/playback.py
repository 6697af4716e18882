"""What the answer's player has played of it, as the server wants to know it."""

from typing import Protocol


class Ear(Protocol):
    def hear(self, pcm: bytes) -> None:
        """PCM16 at 24 kHz, the next of the answer."""
        ...

    def played_ms(self) -> int | None:
        """Of all that was heard; None where nothing plays."""
        ...


class Playback:
    """Answers are played one after the other."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self._item_id = ""
        self._given_bytes = 0
        self._begins_ms = 0
        self._told_ms = 0

    def sound(self, item_id: str, pcm: bytes) -> None:
        if item_id != self._item_id:
            self._item_id, self._begins_ms, self._told_ms = item_id, self._given_bytes // 48, 0
        self._given_bytes += len(pcm)
        self._ear.hear(pcm)

    def news(self) -> dict[str, object] | None:
        """The event that tells how far it is; None when there is nothing new to tell."""
        played_ms = self._ear.played_ms()
        if not self._item_id or played_ms is None or played_ms - self._begins_ms <= self._told_ms:
            return None
        self._told_ms = played_ms - self._begins_ms
        place = {"item_id": self._item_id, "content_index": 0}
        return {"type": "output_audio_buffer.played", **place, "audio_ms": self._told_ms}
