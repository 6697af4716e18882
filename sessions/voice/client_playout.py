"""The client plays the answers for itself: what it has heard of them is reckoned."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from sessions.voice.audio_buffer import SAMPLES_PER_MS
from sessions.voice.events import AudioDelta
from sessions.voice.playback_ledger import PlaybackLedger
from sessions.voice.playout import Heard, Playing


class ClientPlayout:
    """It stops when it hears that the user speaks. Nothing can hold it back. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._time = clock
        self._left_at: float | None = None
        self._ledger = PlaybackLedger()

    @property
    def has_floor(self) -> bool:
        """By what the client was given and the time since then, it still plays."""
        return self._ledger.remaining_ms(self._clock()) > 0

    def playing(self) -> Playing | None:
        return self._ledger.playing(self._clock())

    @contextmanager
    def giving(self, sound: AudioDelta) -> Generator[None]:
        """Around the sending of it to the client."""
        self._ledger.send(sound.response_id, sound.item_id)
        yield
        self._ledger.give(sound.item_id, len(sound.pcm) / 2 / SAMPLES_PER_MS, self._clock())

    def acknowledge(self, item_id: str, audio_ms: int) -> int | None:
        """What the client has played of the item by all it has said; None: it was given nothing of it."""
        return self._ledger.acknowledge(item_id, audio_ms, self._clock())

    def truncate(self, item_id: str) -> None:
        self._ledger.truncate(item_id, self._clock())

    def hold(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def clear(self) -> tuple[Heard, ...]:
        return self._ledger.stop(self._clock())

    def detach(self) -> bool:
        """If nobody comes back, nothing was heard from now on."""
        self._left_at = self._time()
        return True

    def attach(self) -> None:
        """The client is back, and has played on meanwhile what it had."""
        self._left_at = None

    def _clock(self) -> float:
        return self._time() if self._left_at is None else self._left_at

    def levels(self) -> Sequence[float]:
        return ()
