"""What a node that has died has left in the store."""

import asyncio
import logging
from typing import Protocol

from sessions.store.interface import StoreDown

AT_ONCE = 16
"""Sessions that the store is told of side by side."""

log = logging.getLogger(__name__)


class Leases(Protocol):
    """Of the store."""

    async def node_gone(self, node: str) -> tuple[str, ...]: ...

    async def disown(self, session_id: str, node: str) -> None: ...


async def give_up(store: Leases, node: str) -> None:
    """What it held is free for others now, and not only at the end of its leases."""
    try:
        left = await store.node_gone(node)
        for first in range(0, len(left), AT_ONCE):
            await asyncio.gather(*(store.disown(session_id, node) for session_id in left[first : first + AT_ONCE]))
    except StoreDown as down:
        log.warning("node %s is gone, and the store does not know yet: %s", node, down)
