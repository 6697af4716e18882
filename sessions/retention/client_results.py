"""What a client was answered, by the `event_id` of its event: said twice, as after a lost reply, it has no second effect."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from sessions.retention.sealing import Unreadable
from sessions.store.interface import StoreDown
from sessions.store.session_limits import LONGEST_EVENT_ID, MOST_RESULTS, RESULT_WINDOW_S

OBEYED = b""
"""Else what was answered is an error."""
Lookup = Callable[[str], Awaitable[bytes | None]]


class ClientResults:
    """Bounded as in the store; overflow policy `latest`. An id that is longer than the store takes is always new. `lookup`, for a
    session that comes from another node, asks what was answered there. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float], lookup: Lookup | None) -> None:
        self._clock = clock
        self._lookup = lookup
        self._began_at = clock()
        self._results: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    async def of(self, event_id: str) -> bytes | None:
        """None: it is new. Else what it was answered."""
        if len(event_id) > LONGEST_EVENT_ID:
            return None
        now = self._clock()
        kept_at, result = self._results.get(event_id, (0.0, None))
        if result is not None:
            return result if now - kept_at < RESULT_WINDOW_S else None
        if self._lookup is None or now - self._began_at >= RESULT_WINDOW_S:
            return None
        try:
            return await self._lookup(event_id)
        except (StoreDown, Unreadable):
            return None  # better done twice than not at all

    def keep(self, event_id: str, result: bytes) -> None:
        if len(event_id) > LONGEST_EVENT_ID:
            return
        self._results[event_id] = (self._clock(), result)
        self._results.move_to_end(event_id)
        if len(self._results) > MOST_RESULTS:
            self._results.popitem(last=False)
