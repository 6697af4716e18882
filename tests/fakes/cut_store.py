"""A store in memory behind a line that a test cuts, and that may lose its data."""

import asyncio
from collections.abc import Callable, Mapping

from sessions.store.interface import StoreDown
from sessions.store.memory import MemoryStore
from sessions.store.records import Claimed, Fence, Listed, OwnedBy, SessionRecord, Write


class CutStore(MemoryStore):
    """`down`: no session can be written, renewed, claimed or ended. `late`: a claim is carried out, and answered when it is set.
    `written` are all writes that were taken."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        super().__init__(now_us)
        self.down = False
        self.late: asyncio.Event | None = None
        self.written: list[Write] = []

    def lose_all(self, settle_s: float = 0.0) -> None:
        """As after a flush: sessions are gone, and it is another life of its data, which settles for so long."""
        self._sessions.clear()
        self._seating.settled_us = self._clock_us() + round(settle_s * 1e6)
        self._life = self._incarnation = self._incarnation + 1

    async def open(self, record: SessionRecord, node: str, lease_s: float, token: bytes) -> Fence:
        self._check()
        return await super().open(record, node, lease_s, token)

    async def claim(
        self, session_id: str, node: str, lease_s: float, token: bytes, offer: bytes, *, above: Fence | None = None
    ) -> Claimed | OwnedBy | None:
        self._check()
        answer = await super().claim(session_id, node, lease_s, token, offer, above=above)
        late, self.late = self.late, None
        if late is not None:
            await late.wait()
            self._check()
        return answer

    async def renew_owned(self, owned: Mapping[str, Fence], lease_s: float) -> Mapping[str, bool]:
        self._check()
        return await super().renew_owned(owned, lease_s)

    async def write(self, session_id: str, fence: Fence, write: Write) -> None:
        self._check()
        await super().write(session_id, fence, write)
        self.written.append(write)

    async def end(self, session_id: str, fence: Fence | None) -> Listed | None:
        self._check()
        return await super().end(session_id, fence)

    def _check(self) -> None:
        if self.down:
            raise StoreDown("the line is cut", 0.1)
