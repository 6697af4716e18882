"""Sessions on a server with a clock and timers of the test's own, and transports that come to them and go."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from fakes.clock import Clock
from fakes.cut_store import CutStore
from fakes.graph import FakeGraph, silence, tone
from fakes.plain_teller import PlainTeller
from fakes.playout import FakePlayout
from fakes.timers import Timers
from fakes.voice_client import VOICES, config, settle
from sessions.admission.admission import Admission
from sessions.admission.node import Leases, Node, NodeIdentity
from sessions.admission.seats import Seats
from sessions.admission.settings import AdmissionSettings
from sessions.billing import Billing
from sessions.identity.tenants import Tenants
from sessions.retention.ownership import Ownership
from sessions.retention.settings import SessionLimits
from sessions.retention.snapshots import Binding, Origin, Snapshots
from sessions.states import State
from sessions.voice.attached import Attached
from sessions.voice.commands import AppendAudio, CreateItem, CreateResponse
from sessions.voice.config import SemanticVad
from sessions.voice.events import AudioDelta, Event
from sessions.voice.items import InputText, Item
from sessions.voice.playout import Playout, Spawn
from sessions.voice.sessions import VoiceSessions
from sessions.voice.settings import VoiceSettings

E = TypeVar("E")
ANSWER_GRACE_S, DETACHED_GRACE_S = 5, 60
LEASES = Leases(lease_s=1e6, return_s=1e6, grace_s=DETACHED_GRACE_S)
"""Longer than any test."""
QUESTION = Item(id="", role="user", status="completed", parts=(InputText("What is the capital of France?"),))


class House:
    """Sessions on a server, their clock and their timers. A client that plays for itself is given sound at the clock's time."""

    def __init__(
        self,
        seats: int,
        queue: int,
        beside: "House | None",
        name: str,
        graph: FakeGraph,
        warm_mb: int,
        voices: Mapping[str, str],
        origin: Origin,
    ) -> None:
        self.graph = graph
        self.timers = Timers()
        self.clock = Clock() if beside is None else beside.clock
        self.store = CutStore(self.clock.now_us) if beside is None else beside.store
        limits = SessionLimits(
            maximum_sessions=seats, detached_grace_s=DETACHED_GRACE_S, answer_grace_s=ANSWER_GRACE_S, warm_mb=warm_mb
        )
        identity, admission = NodeIdentity(node=name, host=name), AdmissionSettings(longest_queue=0)
        costs = Seats(identity, admission, seats, {}, dict, {})
        self.node = Node(
            self.store, identity, costs.capacity, costs.reserve, leases=LEASES, clock=self.clock, sleep=self.clock.sleep
        )
        self.ownership = Ownership(self.store, name, LEASES.lease_s, self.clock, self.clock.sleep)
        self.snapshots = Snapshots(origin, Binding.PIPELINE)
        self.sessions = VoiceSessions(
            self.graph,
            VoiceSettings(event_queue=queue),
            voices,
            PlainTeller,
            limits=limits,
            ownership=self.ownership,
            admission=Admission(self.node, admission, Tenants(), costs, clock=self.clock),
            snapshots=self.snapshots,
            billing=Billing(self.store, LEASES.lease_s, self.clock, self.clock.sleep),
            clock=self.clock,
            sleep=self.clock.sleep,
            call_later=self.timers.call_later,
        )
        self.node.on_order(self.sessions.heed)

    @property
    def now_s(self) -> float:
        return self.clock.now_s

    @now_s.setter
    def now_s(self, now_s: float) -> None:
        self.clock.now_s = now_s

    def states(self) -> list[State]:
        return [info.state for info in self.sessions.sessions()]


class Transport:
    """Delivers every event at once; `until` waits for the next one of a kind, `rest` takes those that have not been asked for."""

    def __init__(self, attached: Attached, house: House) -> None:
        self.attached = attached
        self.seen: list[Event] = []
        self._house = house
        self._news = asyncio.Event()
        self._asked = 0

    async def deliver(self) -> None:
        async for event in self.attached.events():
            with self.attached.session.giving(event):
                self.seen.append(event)
            self._news.set()

    async def until(self, kind: type[E]) -> E:
        async with asyncio.timeout(10):
            while True:
                while self._asked < len(self.seen):
                    self._asked += 1
                    if isinstance(event := self.seen[self._asked - 1], kind):
                        return event
                self._news.clear()
                await self._news.wait()

    async def rest(self) -> list[str]:
        await settle()
        taken, self._asked = self.seen[self._asked :], len(self.seen)
        return [type(event).__name__ for event in taken]

    async def say(self, *spoken_and_silent_ms: int) -> None:
        for place, duration_ms in enumerate(spoken_and_silent_ms):
            for _ in range(duration_ms // 20):
                self._house.now_s += 0.02
                await self.attached.handle(AppendAudio(silence(20) if place % 2 else tone(20)))
                await settle()

    async def ask(self) -> AudioDelta:
        """Its first sound."""
        await self.attached.handle(CreateItem(QUESTION))
        await self.attached.handle(CreateResponse())
        return await self.until(AudioDelta)


@asynccontextmanager
async def house(
    seats: int = 2,
    queue: int = 256,
    beside: House | None = None,
    name: str = "house",
    graph: FakeGraph | None = None,
    warm_mb: int = 64,
    voices: Mapping[str, str] = VOICES,
    origin: Origin = Origin("voice", "1"),  # noqa: B008 (a frozen value)
) -> AsyncGenerator[House]:
    """Afterwards nothing of any session is left here. `beside`: another node, with which it shares the store."""
    before = asyncio.all_tasks()
    made = House(seats, queue, beside, name, graph or FakeGraph(), warm_mb, voices, origin)
    async with made.node.running(), made.ownership.running(), made.sessions:
        made.node.set(ready=True)
        await settle()
        yield made
    await settle()
    assert made.sessions.sessions() == ()
    assert made.graph.open_requests == 0
    assert asyncio.all_tasks() - before == set()


@asynccontextmanager
async def coming(
    house: House, token: str | None = None, playout: FakePlayout | None = None, last_seq: int | None = None
) -> AsyncGenerator[Transport]:
    """A new session when there is no token. `playout` None: the client plays."""

    def play(before: Playout | None, spawn: Spawn) -> Playout:
        assert playout is not None
        return playout

    player = None if playout is None else play
    sessions = house.sessions
    opening = sessions.open(config(SemanticVad()), player) if token is None else sessions.resume(token, player, last_seq)
    async with opening as attached:
        transport = Transport(attached, house)
        delivering = asyncio.create_task(transport.deliver())
        await settle()
        yield transport
        delivering.cancel()
        await asyncio.wait([delivering])
    await settle()
