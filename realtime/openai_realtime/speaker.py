"""Where an answer's sound goes when the server's side plays it."""

from typing import Protocol

from sessions.voice.events import AudioDelta, AudioDone, ResponseDone


class Speaker(Protocol):
    async def play(self, sound: AudioDelta) -> None:
        """Returns when there is room for more. Sound of an answer that has been cleared is dropped."""
        ...

    async def finish(self, end: AudioDone) -> None:
        """All sound of this answer has been given."""
        ...

    def forget(self, end: ResponseDone) -> None:
        """Nothing more comes of this answer."""
        ...
