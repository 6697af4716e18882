"""What the admin paths answer, and what `antiphon sessions`, `nodes`, `queue`, `seats` and `usage` read."""

from collections.abc import Mapping

import msgspec

from sessions.admission.settings import CalibratedSeats


class SessionShown(msgspec.Struct, frozen=True, kw_only=True):
    """`node` empty: nobody runs it, it waits for its client. `principal` is the id of the key that opened it. `life_s`: what is
    left of its longest life. `usage` is what is written with it; the bill is never ahead of that while it runs."""

    id: str
    tenant: str
    kind: str
    model: str
    state: str
    node: str
    principal: str
    life_s: float
    usage: Mapping[str, float]


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Sorted by id. `next`: what `after` is for the next page; null: this was the last one."""

    data: tuple[SessionShown, ...]
    next: str | None = None


class SessionClosed(msgspec.Struct, frozen=True, kw_only=True):
    """`status`: "closing", its node has been told; "deleted", nobody ran it, and nothing of it is left."""

    id: str
    status: str
    node: str = ""


class NodeShown(msgspec.Struct, frozen=True, kw_only=True):
    """`lease_s`: what is left; 0: it is dead, and its `tickets` wait for their sessions to come back elsewhere."""

    id: str
    host: str
    address: str
    ready: bool
    draining: bool
    lease_s: float
    tickets: int


class NodeList(msgspec.Struct, frozen=True, kw_only=True):
    data: tuple[NodeShown, ...]


class NodeTold(msgspec.Struct, frozen=True, kw_only=True):
    """The order is on its way."""

    id: str
    order: str


class QueueShown(msgspec.Struct, frozen=True, kw_only=True):
    """`estimate_error_s`: how far the first estimate was off, on average of those admitted lately; null: nobody has waited."""

    waiting: int
    longest_queue: int
    longest_wait_s: float
    estimate_error_s: float | None


class ResourceShown(msgspec.Struct, frozen=True, kw_only=True):
    used: float
    capacity: float


class SeatsShown(msgspec.Struct, frozen=True, kw_only=True):
    """`active` counts tickets, of which `lent` are those of sessions without a client, which a newcomer may take. The `load` of a
    host is in millionths of what it carries. `calibrated` is this node's, by kind."""

    active: int
    lent: int
    resources: Mapping[str, ResourceShown]
    calibrated: Mapping[str, CalibratedSeats]


class TenantShown(msgspec.Struct, frozen=True, kw_only=True):
    """`sessions` null: no quota. `active` counts its tickets, one-shot requests among them. `usage` is its bill so far."""

    id: str
    weight: float
    sessions: int | None
    priority: str | None
    active: int
    usage: Mapping[str, float]


class TenantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Sorted by id; `next` as in SessionPage."""

    data: tuple[TenantShown, ...]
    next: str | None = None
