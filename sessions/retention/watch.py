"""What sessions tell whoever measures them."""

from enum import StrEnum
from typing import Protocol


class Expiry(StrEnum):
    """Why a session ended by itself."""

    LONGEST_LIFE = "longest_life"
    IDLE = "idle"
    """Its client was connected, and sent nothing for too long."""
    DETACHED = "detached"
    """Nobody came back."""


class Resume(StrEnum):
    """What a client that came back was told."""

    REPLAYED = "replayed"
    """Each event that it had missed."""
    RESYNC = "resync"
    """The conversation as it is."""


class SessionWatch(Protocol):
    def resumed(self, how: Resume, *, moved: bool) -> None:
        """`moved`: this node had not had it before, or no longer."""
        ...

    def expired(self, why: Expiry) -> None: ...


class Unwatched:
    def resumed(self, how: Resume, *, moved: bool) -> None:
        pass

    def expired(self, why: Expiry) -> None:
        pass
