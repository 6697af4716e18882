"""A connector whose payloads must be fetched, and come when a test lets them."""

import asyncio
import itertools

from engines.connectors import PayloadLost
from engines.connectors.contents import Content, Key, Remote
from engines.connectors.layout import outline
from engines.payloads import Payload


class RemotePayloads:
    """`kept` are the payloads put and not forgotten, by scope and seq. A fetch of a text in `held` waits for `release`.

    `fetching` counts the fetches under way.
    """

    name = "elsewhere"

    def __init__(self) -> None:
        self.kept: dict[tuple[str, int], Payload] = {}
        self.held: set[str] = set()
        self.fetching = 0
        self._numbers = itertools.count()
        self._moved = asyncio.Condition()

    def put(self, key: Key, payload: Payload) -> Content:
        self.kept[key.scope, key.seq] = payload
        return Remote(outline(key, payload), self.name, "")

    async def get(self, content: Content) -> Payload:
        assert isinstance(content, Remote)
        key, text = content.outline.key, content.outline.text
        async with self._moved:
            self.fetching += 1
            self._moved.notify_all()
            try:
                await self._moved.wait_for(lambda: text not in self.held)
            finally:
                self.fetching -= 1
                self._moved.notify_all()
        if (key.scope, key.seq) not in self.kept:
            raise PayloadLost(key, "scripted")
        return self.kept[key.scope, key.seq]

    def offer(self, text: str) -> Content:
        """Of a producer elsewhere."""
        return self.put(Key("elsewhere", next(self._numbers)), Payload(text))

    def lose(self, content: Content) -> None:
        """Whoever fetches it later finds nothing."""
        assert isinstance(content, Remote)
        key = content.outline.key
        del self.kept[key.scope, key.seq]

    @property
    def keys(self) -> list[tuple[str, int]]:
        """Of what stages put, not of what is offered to them."""
        return [key for key in self.kept if key[0] != "elsewhere"]

    async def release(self, text: str) -> None:
        async with self._moved:
            self.held.discard(text)
            self._moved.notify_all()

    async def fetches(self, count: int) -> None:
        """Returns when so many are under way."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.fetching == count)

    def cleanup(self, scope: str, before: int | None = None) -> int:
        gone = [key for key in self.kept if key[0] == scope and (before is None or key[1] < before)]
        for key in gone:
            del self.kept[key]
        return len(gone)

    def holds(self, scope: str) -> int:
        return sum(key[0] == scope for key in self.kept)

    def health(self) -> str:
        return ""

    def close(self) -> None:
        self.kept.clear()
