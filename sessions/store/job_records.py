"""What the store keeps of work that goes on without whoever asked for it."""

from enum import StrEnum

import msgspec


class JobState(StrEnum):
    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """`node` works on it, and holds it by a lease. The store does not look into `wish`."""

    job_id: str
    """Those of a tenant are told in the order of their ids."""
    tenant: str
    node: str
    wish: bytes
    lease_s: float
    keep_s: float
    """How long it is kept after its end."""


class JobSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Times in Unix seconds, by the store's clock."""

    job_id: str
    tenant: str
    node: str
    state: JobState
    progress: int
    """In per cent."""
    made_at: float
    ended_at: float | None
    kept_until: float | None
    """None: until it has ended, and then for its `keep_s`."""
    wish: bytes
    outcome: bytes
    """What its node has said at the end. Failed without an outcome: the node has died."""


class JobsFull(msgspec.Struct, frozen=True):
    """So many are kept already, of this tenant or of all."""

    of_tenant: bool
