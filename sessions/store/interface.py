"""The store, as sessions see it. Every method is one atomic decision by the store's own clock, and may be repeated: a call that
was cancelled, or whose answer was lost, may have been carried out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from sessions.store.job_records import JobSeen, JobsFull, JobState, NewJob
from sessions.store.records import (
    Announcement,
    Ask,
    Census,
    Claimed,
    Decision,
    Fence,
    Kept,
    Listed,
    Missed,
    News,
    NodeSeen,
    Order,
    OwnedBy,
    Owner,
    Renewed,
    SessionRecord,
    Ticket,
    Write,
)

CallWatch: TypeAlias = Callable[[str, float, bool], None]
"""Name of the call, how long it took in seconds, whether it worked."""


class StoreDown(Exception):
    """It does not answer, or answers that it cannot now (LOADING, READONLY, out of memory, no master). It may come back."""

    def __init__(self, why: str, retry_after_s: float) -> None:
        super().__init__(f"the session store does not work now: {why}")
        self.why = why
        self.retry_after_s = retry_after_s


class Fenced(Exception):
    """A newer owner, or a newer attachment, has the session: whoever gets this stops at once and says nothing more for it."""

    def __init__(self, session_id: str, fence: Fence) -> None:
        super().__init__(f"session {session_id!r}: fence {fence} is no longer the newest")
        self.session_id = session_id
        self.fence = fence


class UnknownSession(Exception):
    """No such session: it has ended, or the store has lost it. Its owner, if it lives, may `restore` it."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} is not in the store")
        self.session_id = session_id


class AdmissionStore(Protocol):
    """Who may run. All raise StoreDown."""

    async def announce(self, node: Announcement, tickets: Sequence[Ticket] = ()) -> tuple[int, tuple[str, ...]]:
        """The node, its lease and capacity, from now on. `tickets` are what it holds: those that the store does not have it takes
        up, unless the seat was given away meanwhile; while it settles also beyond capacity (they run). What the store has beyond
        them it gives back, but for what is offered. If the node was dead, those beyond stay kept for their sessions, as of any
        dead node, and are not counted as its own. Returns (incarnation, ids of `tickets` that are lost)."""
        ...

    async def renew(self, node: str, lease_s: float) -> Renewed:
        """The node's lease, and with it all its tickets: one call, however many they are."""
        ...

    async def ask(self, ask: Ask) -> Decision:
        """A ticket, a place to wait, or no. A session that has a ticket already, also a kept one, gets that one; with another
        node or cost in `ask` it is moved, if there is room for the difference."""
        ...

    async def release(self, session_id: str, node: str) -> None:
        """The ticket or the place is given back, and whoever waits for it gets it in the same step. Nothing happens when it is
        another node's by now: a late word of the one before takes nothing away."""
        ...

    async def keep(self, session_id: str, node: str, keep_s: float, lend_after_s: float) -> bool:
        """Its transport is gone: the ticket is kept for so long, lent after so long to whoever finds no other. False: this node
        has none for it. `ask` makes it a full one again."""
        ...

    async def node_gone(self, node: str) -> tuple[str, ...]:
        """Its leases end now. Returns the sessions that it ran: their ownership is to be ended by `disown`."""
        ...

    async def news(self, node: str, after: str, wait_s: float) -> tuple[str, tuple[News, ...]]:
        """What has come for the node since the cursor `after` ("" at first: from now on), at latest after `wait_s`."""
        ...

    async def order(self, node: str, order: Order) -> None: ...

    async def settling_s(self) -> float:
        """How much longer nodes may put back what a store that is new, or has lost its data, does not know. 0: it has settled."""
        ...

    async def nodes(self) -> tuple[NodeSeen, ...]: ...

    async def census(self) -> Census: ...

    async def bill(self, tenant: str, session_id: str, usage: Mapping[str, float], life_s: float = 0.0) -> None:
        """The session's usage so far; told again, the tenant is billed for the difference: for a day beyond `life_s`, the longest
        that there may be more of it."""
        ...

    async def bills(self) -> Mapping[str, Mapping[str, float]]:
        """By tenant, of sessions that are over, too."""
        ...

    async def orphans(self, limit: int) -> tuple[str, ...]:
        """Sessions whose ticket has ended without `release`: taken by this call for a minute, to be billed and, when their time
        is over, deleted; then `release` tells that it is done."""
        ...


class SessionStore(Protocol):
    """What a session is. All raise StoreDown; those that name a fence raise Fenced and UnknownSession."""

    async def open(self, record: SessionRecord, node: str, lease_s: float, token: bytes) -> Fence:
        """A new session, owned by `node`; `token` is the hash of its first token. Repeated by the same node it is answered the
        same while nothing else has happened. Raises ValueError when another one has the id."""
        ...

    async def restore(self, record: SessionRecord, node: str, lease_s: float, tokens: Sequence[bytes], above: Fence) -> Fence:
        """As `open`, for a session that its owner still has and the store has lost, or has from an earlier time: what is there
        is replaced. `tokens`: that which the client has shown to have, and those that it was offered since. The fence is above
        `above`. Raises Fenced when the store has a newer one. Until events are written again,
        `missed` is not complete."""
        ...

    async def claim(
        self, session_id: str, node: str, lease_s: float, token: bytes, offer: bytes, *, above: Fence | None = None
    ) -> Claimed | OwnedBy | None:
        """A client comes back with the token of which `token` is the hash, and is offered the one of `offer`. None: unknown
        session or token, or it has ended. The state becomes `active`, the fence a new one; the owner before is fenced out.
        Repeated with the same `offer` it is answered the same."""
        ...

    async def delivered(self, session_id: str, fence: Fence, token: bytes) -> None:
        """The client has shown that it has this token: those before are void; those that were offered since stay good."""
        ...

    async def renew_owned(self, owned: Mapping[str, Fence], lease_s: float) -> Mapping[str, bool]:
        """Which of these sessions are still so owned; for those the lease begins anew."""
        ...

    async def write(self, session_id: str, fence: Fence, write: Write) -> None:
        """All of it or nothing. The lease begins anew. Raises InputsFull (a ValueError) when there are more than 4 MiB of inputs
        since the last snapshot."""
        ...

    async def disown(self, session_id: str, node: str) -> None:
        """`node` is gone, or has put the session down at a turn boundary: whoever claims it next gets it at once. State
        `detached`."""
        ...

    async def missed(self, session_id: str, fence: Fence, after: int) -> Missed:
        """Not complete when something after `after` is gone, or `after` is greater than any number that may have gone out."""
        ...

    async def kept(self, session_id: str, fence: Fence) -> Kept: ...

    async def result(self, session_id: str, event_id: str) -> bytes | None:
        """What the client's event of this id was answered, within the window."""
        ...

    async def owner(self, session_id: str) -> Owner | None:
        """Of a session whose owner's lease holds."""
        ...

    async def look(self, session_id: str) -> Listed | None: ...

    async def sessions(self, tenant: str | None, after: str, limit: int) -> tuple[Listed, ...]:
        """Sorted by id, those after `after`; tenant None: of all."""
        ...

    async def end(self, session_id: str, fence: Fence | None) -> Listed | None:
        """Everything of it is deleted. Returns what it was, for the last bill; None: it was not there. A fence that is not the
        newest raises Fenced; None deletes whatever is there."""
        ...


class JobStore(Protocol):
    """Work that goes on without whoever asked for it, one record for each job. A job that is not over belongs to its node for as
    long as that reports it; then it is told as failed. What is over is kept for a while. All raise StoreDown."""

    async def post_job(self, job: NewJob, most: int, most_of_tenant: int) -> JobSeen | JobsFull:
        """A new one, which waits. Repeated by its node it is answered as it is now. Raises ValueError when another one has the
        id."""
        ...

    async def report_jobs(self, node: str, progress: Mapping[str, int | None], lease_s: float) -> frozenset[str]:
        """They go on: in per cent how far each is, None: it waits. Their leases begin anew. Returns those that are no longer
        the node's to work on: deleted, or given up as it was silent for too long."""
        ...

    async def end_job(self, job_id: str, node: str, state: JobState, outcome: bytes) -> bool:
        """Completed or failed. False: it is not the node's any more, and what was made is nobody's."""
        ...

    async def job(self, tenant: str, job_id: str) -> JobSeen | None:
        """Another tenant's is as unknown as one that never was."""
        ...

    async def jobs(self, tenant: str, after: str, limit: int, *, newest_first: bool) -> tuple[JobSeen, ...]:
        """By their ids; those behind `after` in the order asked for, "": from the beginning."""
        ...

    async def job_states(self, job_ids: Iterable[str]) -> Mapping[str, JobState]:
        """Of those that there are, of whatever tenant."""
        ...

    async def remove_job(self, tenant: str, job_id: str) -> JobSeen | None:
        """Returns what it was."""
        ...


class KeyStore(Protocol):
    """Named records of an installation: API keys, signing keys. All raise StoreDown."""

    async def put(self, shelf: str, name: str, value: bytes, *, only_new: bool = False) -> bytes:
        """Returns what stands there now: with `only_new` perhaps what another node had put there before."""
        ...

    async def replace(self, shelf: str, name: str, value: bytes) -> bool:
        """False: there is none of this name, and there is none now."""
        ...

    async def get(self, shelf: str, name: str) -> bytes | None: ...

    async def shelf(self, shelf: str) -> Mapping[str, bytes]: ...

    async def remove(self, shelf: str, name: str) -> bool: ...


class Store(AdmissionStore, SessionStore, JobStore, KeyStore, Protocol):
    async def incarnation(self) -> int: ...

    def measured_by(self, watch: CallWatch) -> None:
        """Every call of a server is told to `watch`; a store that asks none tells nothing."""
        ...

    async def close(self) -> None: ...
