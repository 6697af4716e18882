"""What a session says on its wire, as far as the session needs to know: the edge writes it, the journal keeps it."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec

from sessions.retention.journal import Said
from sessions.voice.config import VoiceConfig
from sessions.voice.events import Event


class Bearer(msgspec.Struct, frozen=True):
    """Whom the next events are for: with `token` the client comes back; lost now, it would be held until `held_until_s` (Unix
    seconds)."""

    token: str
    held_until_s: float


class Teller(Protocol):
    """One session's. It outlives transports, and its numbers go on."""

    @property
    def seq(self) -> int:
        """Of the newest event."""
        ...

    def begin(self, fence: int, seq: int | None = None) -> None:
        """Another transport has come: under its fence no event has the name of another one's. `seq`: where the numbers go on."""
        ...

    def write(self, event: Event, bearer: Bearer | None) -> tuple[Said, ...]:
        """The events of the wire that tell this one. `bearer` None: nobody is there."""
        ...

    def state(self) -> bytes:
        """What the edge knows of the session, for another node."""
        ...


Edge: TypeAlias = Callable[[str, VoiceConfig, bytes], Teller]
"""Makes the teller of a session: its id, what it begins with, and `state` of the teller before on another node, or nothing."""
