"""Events on their way to the client."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from sessions.voice.events import AudioDelta, Event, Overtaken

GROUP = 64
"""Events that a reader takes at once: what is ready together is written to the journal together."""


class EventQueue:
    """Bounded; overflow policy `block`: a producer waits for room, so an answer stops taking chunks and its engines stop.

    One reader at a time; between two readers all is kept. Events put after `close` are dropped. `told` says of an event that a
    snapshot of the conversation tells it, too.
    """

    def __init__(self, size: int, told: Callable[[Event], bool]) -> None:
        self._told = told
        self._events: deque[Event] = deque()
        self._room = asyncio.Semaphore(size)
        self._putting = asyncio.Lock()
        self._news = asyncio.Event()
        self._first: Event | None = None
        self._taken: Event | None = None
        """Sound that the reader has, and for which it has not come back yet."""
        self._reader = 0
        self._snapshots = 0
        self.came = self.taken = 0
        """Events that have come, and those of them that a reader has taken; sound does not count."""
        self.closed = False

    async def put(self, *events: Event) -> None:
        """One after the other, with nothing of other producers in between. What a snapshot tells that is taken while this waits
        for room comes as Overtaken."""
        snapshots = self._snapshots
        async with self._putting:
            for event in events:
                await self._put(event, snapshots)

    async def _put(self, event: Event, snapshots: int) -> None:
        await self._room.acquire()
        if self.closed:
            self._room.release()
            return
        self._events.append(event if snapshots == self._snapshots else self._overtaken(event))
        self.came += not isinstance(event, AudioDelta)
        self._news.set()

    def drop(self, stale: Callable[[AudioDelta], bool]) -> list[AudioDelta]:
        """Take back sound that has not been read yet and is stale; returns it."""
        events, self._events = self._events, deque[Event]()
        dropped: list[AudioDelta] = []
        for event in events:
            if isinstance(event, AudioDelta) and event is not self._taken and stale(event):
                dropped.append(event)
                self._room.release()
            else:
                self._events.append(event)
        return dropped

    def pause(self) -> None:
        """The reader until now gets nothing more."""
        self._reader += 1
        self._taken = None
        self._news.set()

    def begin_with(self, first: Event, *, is_snapshot: bool) -> None:
        """The first event of the next reader. A snapshot is told in place of what it tells, which comes as Overtaken."""
        self._first = first
        if is_snapshot:
            self._snapshots += 1
            self._events = deque(map(self._overtaken, self._events))

    def close(self) -> None:
        """The reader gets what is queued, then the end."""
        self.closed = True
        self._news.set()

    def read(self, most: int = 1) -> AsyncIterator[tuple[Event, ...]]:
        """What is ready, in groups of at most so many, until `close` or `pause`. Sound comes alone, and is given to the next
        reader when this one does not come back for more."""
        return self._read(self._reader, most)

    async def _read(self, reader: int, most: int) -> AsyncIterator[tuple[Event, ...]]:
        if self._first is not None and reader == self._reader:
            first, self._first = self._first, None
            yield (first,)
        while reader == self._reader:
            if self._events and isinstance(self._events[0], AudioDelta):
                sound = self._taken = self._events[0]
                yield (sound,)
                self._done_with(sound)
            elif self._events:
                yield self._group(most)
            elif self.closed:
                return
            else:
                self._news.clear()
                await self._news.wait()

    def _group(self, most: int) -> tuple[Event, ...]:
        group: list[Event] = []
        while self._events and len(group) < most and not isinstance(self._events[0], AudioDelta):
            group.append(self._events.popleft())
            self._room.release()
        self.taken += len(group)
        return tuple(group)

    def _done_with(self, sound: Event) -> None:
        """Unless it was dropped in a pause meanwhile."""
        if self._taken is sound:
            self._taken = None
        if self._events and self._events[0] is sound:
            self._events.popleft()
            self._room.release()

    def _overtaken(self, event: Event) -> Event:
        return Overtaken(event) if self._told(event) else event
