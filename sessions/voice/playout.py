"""The sound of answers on its way to the user's ear, where whoever plays it can be told to stop."""

from asyncio import Task
from collections.abc import Callable, Coroutine, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

Source: TypeAlias = Literal["sent", "acknowledged", "truncated", "estimated"]
"""How it is known what was heard: from packets that were sent; from a client that plays for itself and says how far it is, or
where it stopped; from the time that such a client has had for it."""

SILENT_DB = -100.0
"""Level of a slot in which nothing sounds."""


class Heard(msgspec.Struct, frozen=True):
    """How much of an answer had been played when its playback was cleared."""

    response_id: str
    item_id: str
    audio_ms: int
    source: Source = "sent"


class Playing(msgspec.Struct, frozen=True):
    """What is being played: `audio_ms` of an item have been. `remaining_ms` of sound are left to be played, of this and of all
    that waits behind it; infinite where more of it is known to be coming."""

    item_id: str
    audio_ms: float
    remaining_ms: float


class Playout(Protocol):
    """None of these waits: what they ask for has happened when they return."""

    @property
    def has_floor(self) -> bool:
        """An answer is being played, or its sound waits to be."""
        ...

    def playing(self) -> Playing | None:
        """None: nothing is being played, nor waits to be."""
        ...

    def hold(self) -> None:
        """Fall silent: the user may have begun to speak. What is held back goes on after `resume`, or by itself after a moment
        in which nobody confirmed it."""
        ...

    def resume(self) -> None: ...

    def clear(self) -> tuple[Heard, ...]:
        """Fall silent for good: nothing of the answers that have begun is played any more. Returns those that were not
        played to their end."""
        ...

    def detach(self) -> bool:
        """Whoever listened is gone. Returns whether what has not been played can wait for somebody else; if not, clear it."""
        ...

    def levels(self) -> Sequence[float]:
        """How loud what was played was, in dBFS, in each of the last 100 slots of 20 ms, the newest last. Empty: not known."""
        ...


Spawn: TypeAlias = Callable[[Coroutine[None, None, None]], Task[None]]
"""Starts a task that its session owns."""
Player: TypeAlias = Callable[[Playout | None, Spawn], Playout]
"""Gives the playout of a transport that plays: that which the session has had until now, when it will do, or one of its own."""
