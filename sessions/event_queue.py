"""Events on their way to the client."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from sessions.events import Event


class EventQueue:
    """Bounded; overflow policy `block`: a producer waits for room, so an answer stops taking chunks and its engines stop.

    One reader. Events put after `close` are dropped.
    """

    def __init__(self, size: int) -> None:
        self._events: deque[Event] = deque()
        self._room = asyncio.Semaphore(size)
        self._news = asyncio.Event()
        self._closed = False

    async def put(self, event: Event) -> None:
        await self._room.acquire()
        if not self._closed:
            self._events.append(event)
            self._news.set()

    def drop(self, stale: Callable[[Event], bool]) -> list[Event]:
        """Take back what has not been read yet and is stale; returns these events."""
        events, self._events = self._events, deque[Event]()
        dropped: list[Event] = []
        for event in events:
            (dropped if stale(event) else self._events).append(event)
        for _ in dropped:
            self._room.release()
        return dropped

    def close(self) -> None:
        """The reader gets what is queued, then the end."""
        self._closed = True
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                event = self._events.popleft()
                self._room.release()
                yield event
            if self._closed:
                return
            self._news.clear()
            await self._news.wait()
