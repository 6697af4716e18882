"""One session as the memory store has it: what a Function does to one slot, in plain Python. Times are µs of the store."""

import hmac
from collections import deque
from collections.abc import Iterator, Mapping

import msgspec

from sessions.states import State
from sessions.store import session_limits as limits
from sessions.store.records import Entry, Fence, Listed, Missed, SessionRecord, Write

NEVER_WHOLE = 1 << 53
"""As `gone_to`: what went out before is not known."""


class HeldSession(msgspec.Struct):
    record: SessionRecord
    node: str
    """Empty: nobody has it."""
    fence: Fence
    opening: tuple[str, bytes, Fence]
    """By which node, with which token, and the fence that was the answer."""
    over_us: int
    """The end of the longest life."""
    lease_us: int
    leased_until_us: int
    detached_us: int | None = None
    known: bytes = b""
    offered: deque[bytes] = msgspec.field(default_factory=lambda: deque(maxlen=limits.OFFERED_TOKENS))
    last_offer: bytes = b""
    last_moved: bool = False
    last_write: int = 0
    seq: int = 0
    last_event: int = 0
    gone_to: int = 0
    """Events up to this `seq` may be missing."""
    journal: deque[tuple[int, Entry]] = msgspec.field(default_factory=lambda: deque[tuple[int, Entry]]())
    journal_bytes: int = 0
    snapshot: bytes | None = None
    inputs: list[bytes] = []
    results: dict[str, tuple[int, bytes]] = {}
    result_bytes: int = 0
    usage: Mapping[str, float] = {}

    def is_opened_so(self, tenant: str, node: str, token: bytes) -> bool:
        """And nothing has happened since. What was left of its life may be told otherwise when it is said again."""
        return (self.record.tenant, self.node) == (tenant, node) and self.opening == (node, token, self.fence)

    def ends_us(self) -> int:
        since = self.leased_until_us if self.detached_us is None else self.detached_us
        return min(self.over_us, since + round(self.record.grace_s * 1e6))

    def lease(self, now_us: int) -> None:
        self.leased_until_us = now_us + self.lease_us

    def enter(self, state: State, now_us: int) -> None:
        if state is not State.DETACHED:
            self.detached_us = None
        elif self.detached_us is None:
            self.detached_us = now_us
        self.record = msgspec.structs.replace(self.record, state=state)

    def is_valid(self, token: bytes) -> bool:
        known = any(hmac.compare_digest(token, valid) for valid in (self.known, *self.offered))
        return known and token != b""

    def use(self, token: bytes) -> None:
        """A valid token: those before it are void."""
        if token != self.known:
            self.known = token
            self.offered.clear()

    def shown(self, token: bytes) -> None:
        """The client has this valid token: those before it are void, and not what somebody was offered since."""
        while self.known != token:
            self.known = self.offered.popleft()

    def apply(self, write: Write, now_us: int) -> None:
        """Raises InputsFull, and then nothing has changed."""
        if 0 < write.number <= self.last_write:
            self.lease(now_us)
            return
        self._take_inputs(write)
        self.lease(now_us)
        self.last_write = max(self.last_write, write.number)
        self._take_events(write.events, now_us)
        self.seq = max(self.seq, self.last_event, write.promised, write.acknowledged)
        self._trim(write.acknowledged, now_us)
        self._take_results(write.results, now_us)
        self.usage = write.usage or self.usage
        if write.state is not None:
            self.enter(write.state, now_us)

    def missed(self, after: int) -> Missed:
        events = tuple(entry for _, entry in self.journal if entry.seq > after)
        return Missed(events, complete=self.gone_to <= after <= self.seq)

    def listed(self, now_us: int) -> Listed:
        return Listed(record=self.seen(now_us), node=self.node, fence=self.fence, usage=self.usage)

    def seen(self, now_us: int) -> SessionRecord:
        return msgspec.structs.replace(self.record, life_s=(self.over_us - now_us) / 1e6)

    def _take_inputs(self, write: Write) -> None:
        before = [] if write.snapshot is not None else self.inputs
        inputs = [*before, *write.inputs]
        if write.inputs and sum(map(len, inputs)) > limits.INPUT_BYTES:
            raise limits.InputsFull(self.record.session_id)
        self.inputs = inputs
        self.snapshot = self.snapshot if write.snapshot is None else write.snapshot

    def _take_events(self, events: tuple[Entry, ...], now_us: int) -> None:
        for entry in events:
            if entry.seq <= self.last_event:
                continue
            if self.gone_to == NEVER_WHOLE:
                self.gone_to = entry.seq - 1
            self.journal.append((now_us, entry))
            self.journal_bytes += len(entry.event)
            self.last_event = entry.seq

    def _trim(self, acknowledged: int, now_us: int) -> None:
        while self.journal:
            written_us, oldest = self.journal[0]
            too_much = len(self.journal) > limits.JOURNAL_EVENTS or self.journal_bytes > limits.JOURNAL_BYTES
            if not too_much and oldest.seq > acknowledged and written_us >= now_us - limits.JOURNAL_WINDOW_S * 1_000_000:
                return
            self.journal.popleft()
            self.journal_bytes -= len(oldest.event)
            self.gone_to = oldest.seq

    def _take_results(self, results: Mapping[str, bytes], now_us: int) -> None:
        for event_id in tuple(self._old_results(now_us)):
            self._drop_result(event_id)
        for event_id, result in results.items():
            if event_id not in self.results:
                self.results[event_id] = (now_us, result)
                self.result_bytes += len(result)
        while len(self.results) > limits.MOST_RESULTS or self.result_bytes > limits.RESULT_BYTES:
            self._drop_result(next(iter(self.results)))

    def result(self, event_id: str, now_us: int) -> bytes | None:
        written_us, result = self.results.get(event_id, (0, None))
        return result if written_us > now_us - limits.RESULT_WINDOW_S * 1_000_000 else None

    def _old_results(self, now_us: int) -> Iterator[str]:
        for event_id, (written_us, _) in self.results.items():
            if written_us > now_us - limits.RESULT_WINDOW_S * 1_000_000:
                return
            yield event_id

    def _drop_result(self, event_id: str) -> None:
        _, result = self.results.pop(event_id)
        self.result_bytes -= len(result)
