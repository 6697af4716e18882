"""A store in memory whose session loses its owner at a word that a test names, before that is written down."""

import asyncio

from sessions.store.memory import MemoryStore
from sessions.store.records import Fence, Write


class DyingStore(MemoryStore):
    """From the first event that holds `last_word` on, no call of its owner's to write ever returns, and nothing is written."""

    def __init__(self) -> None:
        super().__init__(lambda: 1_700_000_000_000_000)
        self.last_word = b"nothing yet"
        self.died = asyncio.Event()
        self._dead: Fence | None = None

    async def write(self, session_id: str, fence: Fence, write: Write) -> None:
        if any(self.last_word in entry.event for entry in write.events) and not self.died.is_set():
            self._dead = fence
            self.died.set()
        if fence == self._dead:
            await asyncio.Event().wait()
        await super().write(session_id, fence, write)
