"""Events on their way to the client."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from sessions.events import Event


class EventQueue:
    """Bounded; overflow policy `block`: a producer waits for room, so an answer stops taking chunks and its engines stop.

    One reader at a time. Events put after `close` are dropped. `told` says of an event that a snapshot of the conversation tells
    it, too: between two readers nobody needs those.
    """

    def __init__(self, size: int, told: Callable[[Event], bool]) -> None:
        self._told = told
        self._events: deque[Event] = deque()
        self._room = asyncio.Semaphore(size)
        self._putting = asyncio.Lock()
        self._news = asyncio.Event()
        self._first: Event | None = None
        self._taken: Event | None = None
        """The reader has it and has not come back yet."""
        self._reader = 0
        self._waits = False
        """For a reader that begins with a snapshot."""
        self.closed = False

    async def put(self, *events: Event) -> None:
        """One after the other, with nothing of other producers in between. Meant for the reader there is now: what a snapshot
        tells, too, the one after it does not get."""
        reader = self._reader
        async with self._putting:
            for event in events:
                await self._put(event, reader)

    async def _put(self, event: Event, reader: int) -> None:
        if self._is_stale(event, reader):
            return
        await self._room.acquire()
        if self.closed or self._is_stale(event, reader):
            self._room.release()
            return
        self._events.append(event)
        self._news.set()

    def drop(self, stale: Callable[[Event], bool]) -> list[Event]:
        """Take back what has not been read yet and is stale; returns these events."""
        events, self._events = self._events, deque[Event]()
        dropped: list[Event] = []
        for event in events:
            (dropped if event is not self._taken and stale(event) else self._events).append(event)
        for _ in dropped:
            self._room.release()
        return dropped

    def pause(self) -> None:
        """The reader until now gets nothing more, and who comes next begins with a snapshot."""
        self._reader += 1
        self._waits = True
        self._taken = None
        self.drop(self._told)
        self._news.set()

    def resume(self, snapshot: Event) -> None:
        """The first event of the next reader."""
        self._first = snapshot
        self._waits = False

    def close(self) -> None:
        """The reader gets what is queued, then the end."""
        self.closed = True
        self._news.set()

    def read(self) -> AsyncIterator[Event]:
        """Until `close` or `pause`. An event is done with when the next one is asked for; if none is, the next reader gets it."""
        return self._read(self._reader)

    async def _read(self, reader: int) -> AsyncIterator[Event]:
        if self._first is not None and reader == self._reader:
            first, self._first = self._first, None
            yield first
        while reader == self._reader:
            if self._events:
                event = self._taken = self._events[0]
                yield event
                self._done_with(event)
            elif self.closed:
                return
            else:
                self._news.clear()
                await self._news.wait()

    def _done_with(self, event: Event) -> None:
        """Unless it was dropped in a pause meanwhile."""
        if self._taken is event:
            self._taken = None
        if self._events and self._events[0] is event:
            self._events.popleft()
            self._room.release()

    def _is_stale(self, event: Event, reader: int) -> bool:
        return (self._waits or reader != self._reader) and self._told(event)
