"""News for nodes, in memory."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from sessions.store.admission_limits import NEWS_KEPT
from sessions.store.records import News


@dataclass(slots=True)
class _Board:
    kept: deque[tuple[int, News]] = field(default_factory=lambda: deque[tuple[int, News]](maxlen=NEWS_KEPT))
    last: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class NewsBoards:
    """One for each node that was told anything, or has listened."""

    def __init__(self) -> None:
        self._boards: dict[str, _Board] = {}

    def tell(self, node: str, news: News) -> None:
        board = self._boards.setdefault(node, _Board())
        board.last += 1
        board.kept.append((board.last, news))
        board.changed.set()

    async def read(self, node: str, after: str, wait_s: float) -> tuple[str, tuple[News, ...]]:
        board = self._boards.setdefault(node, _Board())
        seen = int(after) if after else board.last
        if board.last <= seen:
            board.changed.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await board.changed.wait()
            except TimeoutError:
                return str(seen), ()
        return str(board.last), tuple(news for number, news in board.kept if number > seen)
