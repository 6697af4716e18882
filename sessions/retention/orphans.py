"""Sessions that nobody runs any more, as their node has died: billed for what was written of them, and deleted when their time is
over. Every node looks after those of all."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sessions.store.interface import Store, StoreDown

log = logging.getLogger(__name__)

AT_ONCE = 64
KEPT_S = 60.0
"""A session's record is kept so much longer than the session: or it would be gone before anybody has read what to bill."""


class Orphans:
    """`node`: who looks. `delete` leaves nothing of a session anywhere. What is taken and not finished is given to another node
    after a while."""

    def __init__(
        self,
        store: Store,
        node: str,
        every_s: float,
        delete: Callable[[str], Awaitable[object]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._node = node
        self._every_s = every_s
        self._delete = delete
        self._sleep = sleep

    async def look_after(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._sleep(self._every_s)
            try:
                await self.sweep()
            except StoreDown as down:
                log.info("orphans wait: %s", down)

    async def sweep(self) -> None:
        """Those that are due. Raises StoreDown."""
        while found := await self._store.orphans(AT_ONCE):
            for session_id in found:
                await self._close(session_id)

    async def _close(self, session_id: str) -> None:
        left = await self._store.look(session_id)
        if left is not None:
            await self._store.bill(left.record.tenant, session_id, left.usage, left.record.life_s)
            if await self._store.owner(session_id) is not None:
                return  # who runs it has lost its seat, and ends it; if not, it is found again
            try:
                await self._delete(session_id)
                log.info("session %s had ended without a word of its node; it is billed and deleted", session_id)
            except OSError as kept:  # the file of its snapshot; those that are old are swept away
                log.error("session %s is billed, and a file of it cannot be deleted now: %s", session_id, kept)
        await self._store.release(session_id, self._node)
