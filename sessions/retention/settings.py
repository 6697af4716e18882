"""How many sessions a node has, and how long they are kept. They stand in the deployment's section `session`."""

from typing import Annotated, TypeAlias

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0.0, le=31_536_000.0)]
"""A year at most: no store can count to the end of .inf."""


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the sessions of one kind, or of one tenant. null: as everywhere."""

    longest_session_s: Seconds | None = None
    detached_grace_s: Seconds | None = None
    idle_limit_s: Seconds | None = None


class Lifetime(msgspec.Struct, frozen=True, kw_only=True):
    """How long one session lives: in all, without a transport, and without a word of its client (None: as long as it likes)."""

    longest_s: float
    grace_s: float
    idle_s: float | None


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seats of this node, and how long sessions are kept."""

    maximum_sessions: Count = 16
    longest_session_s: Seconds = 7_200.0
    """A session ends then, whatever its client does; it is warned a minute before."""
    idle_limit_s: Seconds | None = None
    """It ends when its client has sent nothing at all, sound included, for so long. Pings do not count."""
    detached_grace_s: Seconds = 60.0
    """How long a session without a transport is kept."""
    answer_grace_s: Seconds = 5.0
    """How long an answer waits for a client whose connection was lost. Later nobody knows what it was about."""
    warm_mb: Annotated[int, msgspec.Meta(ge=0)] = 256
    """What detached sessions may hold in this node's memory. The one detached longest leaves first; its snapshot stays."""
    snapshots: str = "store"
    """Where they are kept: `store`, or a directory that all nodes see."""
    kinds: dict[str, Retention] = {}
    """By kind of session, such as `voice`."""
    tenants: dict[str, Retention] = {}
    """By tenant; goes before the kind's."""

    @property
    def longest_anywhere_s(self) -> float:
        """No session lives longer, whosever it is."""
        named = (each.longest_session_s for each in (*self.kinds.values(), *self.tenants.values()))
        return max(self.longest_session_s, *(longest_s for longest_s in named if longest_s is not None), 0.0)

    def lifetime(self, kind: str, tenant: str, longest_session_s: float | None = None) -> Lifetime:
        """`longest_session_s` is what the key that opens it allows."""
        asked = (self.tenants.get(tenant, _ANY), self.kinds.get(kind, _ANY))
        longest = [each.longest_session_s for each in asked if each.longest_session_s is not None]
        grace = [each.detached_grace_s for each in asked if each.detached_grace_s is not None]
        idle = [each.idle_limit_s for each in asked if each.idle_limit_s is not None]
        longest_s = [*longest, self.longest_session_s][0]
        return Lifetime(
            longest_s=longest_s if longest_session_s is None else min(longest_s, longest_session_s),
            grace_s=[*grace, self.detached_grace_s][0],
            idle_s=[*idle, self.idle_limit_s][0],
        )


_ANY = Retention()
