"""A client of a VoiceSession inside the test: it reads every event and waits for the ones it is asked for."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from fakes.graph import FakeGraph, silence, tone
from sessions.voice.commands import AppendAudio, Command, CommandRefused
from sessions.voice.config import TurnDetection, VoiceConfig
from sessions.voice.events import Event
from sessions.voice.playout import Playout
from sessions.voice.session import VoiceSession
from sessions.voice.settings import VoiceSettings

E = TypeVar("E")
PACKET_BYTES = 960
VOICES = {"joe": "audio", "heart": "narration"}
UNGUARDED = VoiceSettings(interruption_ms=0, echo_guard=False, echo_guard_ms=0)
"""Every onset interrupts."""


def config(turn_detection: TurnDetection = None, **changes: object) -> VoiceConfig:
    known: dict[str, object] = {"model": "voice", "instructions": "Be brief.", "voice": "joe", "turn_detection": turn_detection}
    return VoiceConfig(**{**known, **changes})  # pyright: ignore[reportArgumentType] keywords of a test


class VoiceClient:
    def __init__(self, session: VoiceSession, graph: FakeGraph) -> None:
        self.session = session
        self.graph = graph
        self.events: list[Event] = []
        self.now_s = 0.0
        self.reading = asyncio.Event()
        self.reading.set()
        self._news = asyncio.Event()
        self._seen = 0

    async def read(self) -> None:
        async for event in self.session.events():
            with self.session.giving(event):
                self.events.append(event)
            self._news.set()
            await self.reading.wait()

    async def send(self, *commands: Command) -> None:
        for command in commands:
            await self.session.handle(command)

    async def say(self, *spoken_and_silent_ms: int) -> None:
        """Speech and silence in turn, in packets of 20 ms, in real time as far as the session's clock goes."""
        for place, duration_ms in enumerate(spoken_and_silent_ms):
            await self.sound(silence(duration_ms) if place % 2 else tone(duration_ms))

    async def sound(self, *pcm: bytes) -> None:
        """The same, of any sounds."""
        for each in pcm:
            for start in range(0, len(each), PACKET_BYTES):
                self.now_s += len(each[start : start + PACKET_BYTES]) / 48_000
                await self.send(AppendAudio(each[start : start + PACKET_BYTES]))
                await settle()

    async def until(self, kind: type[E], condition: Callable[[E], bool] = lambda event: True) -> E:
        """The next such event after the ones that were waited for before."""
        while True:
            while self._seen < len(self.events):
                event = self.events[self._seen]
                self._seen += 1
                if isinstance(event, kind) and condition(event):
                    return event
            self._news.clear()
            await self._news.wait()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    async def refusal(self, command: Command) -> CommandRefused:
        try:
            await self.send(command)
        except CommandRefused as refused:
            return refused
        raise AssertionError(f"expected {command} to be refused")


async def settle() -> None:
    """Lets everything run that can run without new input."""
    for _ in range(60):
        await asyncio.sleep(0)


@asynccontextmanager
async def talking(
    graph: FakeGraph | None = None,
    settings: VoiceSettings | None = None,
    voice_config: VoiceConfig | None = None,
    playout: Playout | None = None,
) -> AsyncGenerator[VoiceClient, None]:
    """An open session and its client; checks afterwards that nothing of it is left."""
    graph = graph or FakeGraph()
    numbers: dict[str, int] = {}

    def ids(prefix: str) -> str:
        numbers[prefix] = numbers.get(prefix, 0) + 1
        return f"{prefix}_{numbers[prefix]}"

    before = asyncio.all_tasks()
    session = VoiceSession(
        graph, voice_config or config(), settings or VoiceSettings(), VOICES, "sess_1", 7, lambda: client.now_s, ids, playout
    )
    client = VoiceClient(session, graph)
    async with asyncio.TaskGroup() as around:
        async with session:
            around.create_task(client.read())
            await settle()
            yield client
        client.reading.set()
    await settle()
    assert graph.open_requests == 0
    assert asyncio.all_tasks() - before == set()
