"""What the parts of one voice session share."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TypeVar

from engines.parameters import Parameters
from engines.requests import Graph, Request
from sessions.usage import UsageMeter
from sessions.voice.config import VoiceConfig
from sessions.voice.event_queue import EventQueue
from sessions.voice.events import AudioDelta, Event
from sessions.voice.playout import Playout
from sessions.voice.resync import told
from sessions.voice.settings import VoiceSettings

T = TypeVar("T")

RECOGNISERS = 2
"""Recognitions of one session at a time: a client that sends minutes at once waits for itself and holds up nobody else."""


class VoiceState:
    """`voices` maps a voice's name to the graph's output that speaks with it. `epoch` is the generation of output; `fence` and
    `playout` are those of the newest transport."""

    def __init__(
        self,
        graph: Graph,
        config: VoiceConfig,
        settings: VoiceSettings,
        voices: Mapping[str, str],
        session_id: str,
        fence: int,
        clock: Callable[[], float],
        ids: Callable[[str], str],
        playout: Playout,
    ) -> None:
        self.graph = graph
        self.config = config
        self.settings = settings
        self.voices = voices
        self.clock = clock
        self.ids = ids
        self.playout = playout
        self.fence = fence
        self.epoch = 0
        self.usage = UsageMeter()
        self.recognising = asyncio.Semaphore(RECOGNISERS)
        self.events = EventQueue(settings.event_queue, told)
        self._session_id = session_id
        self._tasks = asyncio.TaskGroup()
        self._running: set[asyncio.Task[object]] = set()

    async def open(self) -> None:
        await self._tasks.__aenter__()

    async def close(self, raised: BaseException | None) -> None:
        """Ends every task of the session; returns when none is left. `raised` is what ends the session, if anything."""
        self.events.close()
        for task in self._running:
            task.cancel()
        # An exception of the block passes by unwrapped; a cancellation the group must know, as it may be its own.
        cancelled = raised if isinstance(raised, asyncio.CancelledError) else None
        await self._tasks.__aexit__(type(cancelled) if cancelled else None, cancelled, None)

    def spawn(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """A task that ends with the session at the latest. An exception of it ends the session."""
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def emit(self, *events: Event) -> None:
        """Waits while the client is slow. What tells one change of the conversation is emitted at once, and right after it: a
        transport that comes meanwhile knows the change from its snapshot."""
        for event in events:
            if isinstance(event, AudioDelta):
                self.usage.speak(event.pcm)
        await self.events.put(*events)

    def request(self, entry: str, outputs: tuple[str, ...], parameters: Mapping[str, Parameters]) -> Request:
        return Request(
            request_id=self.ids("req"),
            entry=entry,
            outputs=outputs,
            parameters=parameters,
            session_id=self._session_id,
            fence=self.fence,
            epoch=self.epoch,
        )
