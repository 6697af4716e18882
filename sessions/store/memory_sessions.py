"""Sessions of one process, in memory. Also the model that the Functions of Redis are tested against."""

import heapq
from collections.abc import Callable, Mapping, Sequence

from sessions.states import State
from sessions.store.held_session import NEVER_WHOLE, HeldSession
from sessions.store.interface import Fenced, UnknownSession
from sessions.store.records import Claimed, Fence, Kept, Listed, Missed, OwnedBy, Owner, SessionRecord, Write
from sessions.store.session_limits import check_record, check_write, checked_id

OVER = frozenset({State.CLOSING, State.CLOSED, State.FAILED, State.EXPIRED})
"""Nobody comes back to these."""


class MemorySessions:
    """A SessionStore and a KeyStore. `now_us` is the store's clock."""

    def __init__(self, now_us: Callable[[], int], incarnation: int) -> None:
        self._now_us = now_us
        self._incarnation = incarnation
        self._sessions: dict[str, HeldSession] = {}
        self._due: list[tuple[int, str]] = []
        """One entry for each session: not before then it ends by itself, unless it is detached meanwhile."""
        self._shelves: dict[str, dict[str, bytes]] = {}

    # ── ownership

    async def open(self, record: SessionRecord, node: str, lease_s: float, token: bytes) -> Fence:
        check_record(record)
        known = self._living(record.session_id)
        if known is None:
            return self._begin(record, node, lease_s, (token,), Fence(0, 0)).fence
        if not known.is_opened_so(record.tenant, node, token):
            raise ValueError(f"session id: expected a new one, got {record.session_id!r}, which is in use")
        known.lease(self._now_us())
        return known.fence

    async def restore(self, record: SessionRecord, node: str, lease_s: float, tokens: Sequence[bytes], above: Fence) -> Fence:
        check_record(record)
        known = self._living(record.session_id)
        if known is not None and known.fence > above:
            if not known.is_opened_so(record.tenant, node, tokens[0]):
                raise Fenced(record.session_id, above)
            known.lease(self._now_us())
            return known.fence
        held = self._begin(record, node, lease_s, tokens, above)
        held.gone_to = NEVER_WHOLE
        return held.fence

    async def claim(
        self, session_id: str, node: str, lease_s: float, token: bytes, offer: bytes, *, above: Fence | None = None
    ) -> Claimed | OwnedBy | None:
        held = self._living(session_id)
        if held is None or held.record.state in OVER or not held.is_valid(token):
            return None
        now_us = self._now_us()
        if held.node not in ("", node) and held.leased_until_us > now_us:
            return OwnedBy(held.node, (held.leased_until_us - now_us) / 1e6)
        held.lease_us = _us(lease_s)
        held.lease(now_us)
        held.enter(State.ACTIVE, now_us)
        if (held.node, held.last_offer) != (node, offer):
            held.use(token)
            held.offered.append(offer)
            held.last_offer, held.last_moved, held.last_write = offer, held.node != node, 0
            held.node, held.fence = node, self._next(max(held.fence, above or held.fence))
        return Claimed(record=held.seen(now_us), fence=held.fence, seq=held.seq, moved=held.last_moved)

    async def delivered(self, session_id: str, fence: Fence, token: bytes) -> None:
        held = self._owned(session_id, fence)
        if held.is_valid(token):
            held.shown(token)

    async def renew_owned(self, owned: Mapping[str, Fence], lease_s: float) -> Mapping[str, bool]:
        return {session_id: self._renew(session_id, fence, lease_s) for session_id, fence in owned.items()}

    async def disown(self, session_id: str, node: str) -> None:
        held = self._living(session_id)
        if held is not None and held.node == node:
            held.node, held.leased_until_us = "", self._now_us()
            if held.record.state not in OVER:
                held.enter(State.DETACHED, self._now_us())

    # ── content

    async def write(self, session_id: str, fence: Fence, write: Write) -> None:
        check_write(write)
        self._owned(session_id, fence).apply(write, self._now_us())

    async def missed(self, session_id: str, fence: Fence, after: int) -> Missed:
        return self._owned(session_id, fence).missed(after)

    async def kept(self, session_id: str, fence: Fence) -> Kept:
        held = self._owned(session_id, fence)
        return Kept(held.snapshot, tuple(held.inputs))

    async def result(self, session_id: str, event_id: str) -> bytes | None:
        held = self._living(session_id)
        return None if held is None else held.result(event_id, self._now_us())

    # ── looking, ending

    async def owner(self, session_id: str) -> Owner | None:
        held = self._living(session_id)
        left_us = 0 if held is None else held.leased_until_us - self._now_us()
        return Owner(held.node, held.fence, left_us / 1e6) if held is not None and held.node and left_us > 0 else None

    async def look(self, session_id: str) -> Listed | None:
        held = self._living(session_id)
        return None if held is None else held.listed(self._now_us())

    async def sessions(self, tenant: str | None, after: str, limit: int) -> tuple[Listed, ...]:
        self._sweep()
        now_us = self._now_us()
        ids = sorted(
            session_id
            for session_id, held in self._sessions.items()
            if session_id > after and tenant in (None, held.record.tenant) and held.ends_us() > now_us
        )
        return tuple(self._sessions[session_id].listed(now_us) for session_id in ids[:limit])

    async def end(self, session_id: str, fence: Fence | None) -> Listed | None:
        held = self._living(session_id)
        if held is None:
            return None
        if fence is not None and (held.fence != fence or not held.node):
            raise Fenced(session_id, fence)
        del self._sessions[session_id]
        return held.listed(self._now_us())

    # ── keys

    async def put(self, shelf: str, name: str, value: bytes, *, only_new: bool = False) -> bytes:
        named = self._shelves.setdefault(shelf, {})
        if not only_new:
            named[name] = value
        return named.setdefault(name, value)

    async def replace(self, shelf: str, name: str, value: bytes) -> bool:
        named = self._shelves.get(shelf, {})
        if name not in named:
            return False
        named[name] = value
        return True

    async def get(self, shelf: str, name: str) -> bytes | None:
        return self._shelves.get(shelf, {}).get(name)

    async def shelf(self, shelf: str) -> Mapping[str, bytes]:
        return dict(self._shelves.get(shelf, {}))

    async def remove(self, shelf: str, name: str) -> bool:
        return self._shelves.get(shelf, {}).pop(name, None) is not None

    # ── within

    def _begin(self, record: SessionRecord, node: str, lease_s: float, tokens: Sequence[bytes], above: Fence) -> HeldSession:
        self._sweep()
        now_us, fence = self._now_us(), self._next(above)
        opening, over_us = (node, tokens[0], fence), now_us + _us(record.life_s)
        held = HeldSession(record, node, fence, opening, over_us, lease_us=_us(lease_s), leased_until_us=0)
        held.lease(now_us)
        held.enter(record.state, now_us)
        held.known = tokens[0]
        held.offered.extend(tokens[1:])
        self._sessions[record.session_id] = held
        heapq.heappush(self._due, (held.ends_us(), record.session_id))
        return held

    def _next(self, fence: Fence) -> Fence:
        return Fence(max(fence.incarnation, self._incarnation), max(fence.number + 1, self._now_us()))

    def _renew(self, session_id: str, fence: Fence, lease_s: float) -> bool:
        held = self._living(session_id)
        if held is None or held.fence != fence or not held.node:
            return False
        held.lease_us = _us(lease_s)
        held.lease(self._now_us())
        return True

    def _owned(self, session_id: str, fence: Fence) -> HeldSession:
        """Raises UnknownSession and Fenced."""
        held = self._living(session_id)
        if held is None:
            raise UnknownSession(session_id)
        if held.fence != fence or not held.node:
            raise Fenced(session_id, fence)
        return held

    def _living(self, session_id: str) -> HeldSession | None:
        held = self._sessions.get(checked_id(session_id))
        if held is not None and held.ends_us() <= self._now_us():
            del self._sessions[session_id]
            return None
        return held

    def _sweep(self) -> None:
        """Deletes what nobody has asked for since it ended."""
        now_us = self._now_us()
        while self._due and self._due[0][0] <= now_us:
            _, session_id = heapq.heappop(self._due)
            held = self._sessions.get(session_id)
            if held is not None and held.ends_us() <= now_us:
                del self._sessions[session_id]
            elif held is not None:
                heapq.heappush(self._due, (held.ends_us(), session_id))


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
