"""What goes into the store and comes out of it. Times are seconds, or what is left of a lease: clocks are never compared."""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import TypeAlias

import msgspec

from sessions.states import State

Resources: TypeAlias = Mapping[str, float]
"""Resource → amount. Names are `node:<id>:<what>`, `host:<id>:<what>` or `tenant:<id>:<what>`."""


class Priority(IntEnum):
    """Who waits stands behind all of a smaller number."""

    RESUME = 0
    CONTROL = 1
    INTERACTIVE = 2
    BATCH = 3


class Fence(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Only grows; the newest attachment has the greatest. `number` is what rides on requests and chunks.

    `incarnation` names a life of the store's data: after a flush or a failover to older data it is another, greater one.
    `number` is max(the one before + 1, the store's time in µs).
    """

    incarnation: int
    number: int


# ── admission


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """A node tells what it brings. `capacity` of a `host:` resource is told alike by every node of the host, and holds while one
    of them lives; `reserve` is the part of it that only RESUME may take. `tickets` are those it holds: after a loss of the
    store's data it registers them again with it.
    """

    node: str
    host: str
    address: str
    """Where the front, or an operator, reaches it; empty: nowhere but through its front."""
    ready: bool
    draining: bool
    capacity: Resources
    reserve: Resources = {}
    lease_s: float = 10.0
    return_s: float = 10.0
    """If it dies: how long its tickets are kept for their sessions alone."""
    grace_s: float = 60.0
    """And how long in all, lent to whoever finds no other seat."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """The wish to run. Asked again under the same id it renews the place in the waiting room, and is answered the same."""

    session_id: str
    tenant: str
    kind: str
    node: str
    cost: Resources
    quota: Resources = {}
    """Limits of `tenant:` resources, as the asker knows them."""
    priority: Priority = Priority.INTERACTIVE
    weight: float = 1.0
    """Of the tenant, for fairness between tenants of the same priority; greater is more."""
    life_s: float = 3600.0
    """After it the ticket ends, whatever the node says."""
    may_wait: bool = True
    place_s: float = 5.0
    """The lease of a place in the waiting room."""
    longest_queue: int = 100
    """Entries of all tenants together."""
    longest_wait_s: float = 300.0


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """The right to run. It lives with its node's lease, at most until `life_s`."""

    session_id: str
    tenant: str
    kind: str
    node: str
    cost: Resources
    number: int
    """Grows with each ticket."""
    life_s: float
    """What is left."""


class Admitted(msgspec.Struct, frozen=True, tag=True):
    ticket: Ticket


class Waiting(msgspec.Struct, frozen=True, tag=True):
    position: int
    """From 1; what is told to one waiting session never grows."""
    estimate_s: float | None
    """None: nobody has left yet, so nothing is known."""


class Refusal(StrEnum):
    QUOTA = "quota"
    """The tenant has what it may have."""
    FULL = "full"
    """And the waiting room is full, too, or it was not to wait."""
    WAITED = "waited"
    """As long as one may."""
    TOO_BIG = "too_big"
    """More than there is at all."""
    DRAINING = "draining"
    SETTLING = "settling"
    """The store has lost its data, or is new: nodes that live may still register what they hold."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    reason: Refusal
    resource: str
    """Which one is lacking; empty where it is none."""
    retry_after_s: float


Decision: TypeAlias = Admitted | Waiting | Refused


class Renewed(msgspec.Struct, frozen=True):
    """`incarnation` other than the one a node knows: the data was lost, and it has to announce itself with its tickets."""

    incarnation: int
    known: bool
    """False: the lease had ended; the node has to announce itself again and ask which tickets it still has."""
    tickets: int
    """How many the store believes the node to hold, without those that are only offered."""


class Offered(msgspec.Struct, frozen=True, tag=True):
    """A session that waited has its ticket; the next `ask` takes it, within `place_s`."""

    session_id: str


class Evicted(msgspec.Struct, frozen=True, tag=True):
    """The ticket of this number is gone: lent to somebody else, or at the end of its life."""

    session_id: str
    number: int


class Order(msgspec.Struct, frozen=True, tag=True):
    """What an operator, or another node, wants of this one: `verb` "close", "yield", "drain", "undrain", or "forget" of a job
    that was deleted; `session_id` empty: the node."""

    verb: str
    session_id: str


News: TypeAlias = Offered | Evicted | Order


class NodeSeen(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    host: str
    address: str
    ready: bool
    draining: bool
    lease_s: float
    tickets: int


class Used(msgspec.Struct, frozen=True):
    """`capacity` 0: nobody who lives has any of it, or it is a tenant's, whose limit is in each ask. Amounts are counted in
    thousandths."""

    used: float
    capacity: float


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """What admission counts. `lent`: tickets of detached sessions, which are among the active ones."""

    active: int
    lent: int
    waiting: int
    resources: Mapping[str, Used]
    tenants: Mapping[str, int]
    wait_error_s: float | None
    """|told at first − waited|, averaged over those admitted lately."""


# ── one session


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session while nobody runs it. `profile` names what a snapshot can be restored into: model, hash,
    format."""

    session_id: str
    tenant: str
    kind: str
    model: str
    life_s: float
    """At the opening: the longest life; read back: what is left of it."""
    grace_s: float
    """How long it is kept without a transport."""
    principal: str = ""
    """Id of the key that opened it, never the key."""
    profile: str = ""
    state: State = State.OPENING


class Owner(msgspec.Struct, frozen=True):
    """`fence` is that of the newest attachment."""

    node: str
    fence: Fence
    lease_s: float


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One event of the journal, as it went out."""

    seq: int
    event: bytes


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One atomic addition to a session; every part may be missing. `seq` of the events rise, not always by one: what is not
    journaled (sound) has numbers, too. `usage` is the total so far."""

    number: int = 0
    """Of this write under its fence, rising: one that is not above the last was written already, and is passed over. 0: it is
    not told, and a repetition would add the inputs twice."""
    events: tuple[Entry, ...] = ()
    promised: int = 0
    """Numbers up to this one may go out without being written (sound): whoever owns the session next begins above it."""
    inputs: tuple[bytes, ...] = ()
    """Since the last snapshot."""
    snapshot: bytes | None = None
    """In place of the one before and its inputs; `inputs` of the same write come after it."""
    results: Mapping[str, bytes] = {}
    """By the client's `event_id`: what it was answered, for whoever says it twice."""
    acknowledged: int = 0
    """The client has all up to this `seq`: they need not be kept."""
    usage: Mapping[str, float] = {}
    state: State | None = None


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """The session is this node's, under a new fence. `moved`: another node had it before, so what that one held in memory is to
    be restored from snapshot and inputs."""

    record: SessionRecord
    fence: Fence
    seq: int
    """The greatest number that may have gone out: of an event, promised, or acknowledged."""
    moved: bool


class OwnedBy(msgspec.Struct, frozen=True):
    """Another node has it, and its lease holds."""

    node: str
    lease_s: float


class Missed(msgspec.Struct, frozen=True):
    """Events after a `seq`, in order. `complete` False: some are gone, so only a resync is honest."""

    events: tuple[Entry, ...]
    complete: bool


class Kept(msgspec.Struct, frozen=True):
    snapshot: bytes | None
    inputs: tuple[bytes, ...]


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    record: SessionRecord
    node: str
    fence: Fence | None
    usage: Mapping[str, float]
