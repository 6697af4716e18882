"""What the operator may set about who is let in: the deployment's sections `admission:` and `seats:`."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0.0, le=31_536_000.0)]
"""A year at most: no store can count to the end of .inf."""


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The waiting room is one for all nodes of a store."""

    longest_queue: Annotated[int, msgspec.Meta(ge=0)] = 100
    """Who comes when so many wait is refused; unless those of another tenant have more than its share of the room, for then the
    last of them is. 0: nobody waits."""
    longest_wait_s: Seconds = 300.0
    place_s: Seconds = 5.0
    """A place in the waiting room is given up when nobody has asked for it for so long."""
    request_wait_s: Seconds = 5.0
    """How long a one-shot request over REST waits for its turn before it is answered 503."""
    requests: Count = 64
    """One-shot requests of a node at a time."""
    reserved_seats: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Of a node's sessions, those that only clients who come back may have: for when another node has died."""
    state_mb: Count = 4096
    """What the sessions of a node may hold in its memory, each reckoned at the most that it can."""
    refuse_before_upgrade: bool = False
    """Answer a WebSocket that cannot be served by an HTTP status. By default it is told after the upgrade, by an error and a
    close code: stock clients show their users no more of a refused handshake than its status."""


class CalibratedSeats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Written by `antiphon calibrate`: how many sessions of a kind this machine runs side by side without breaking a bar."""

    seats: Count
    measured: Mapping[str, float] = {}
    """At that number."""
    machine: str = ""
    """Where it was measured; it says nothing of another one."""
