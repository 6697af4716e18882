"""The Functions and the model in Python are driven side by side by chance, with nodes that crash at any step: equal answers,
nobody seated beyond capacity, no position that grows, nothing left at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import ClassVar, TypeVar

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from fakes.admission_store import TimedAdmission, in_memory, in_redis
from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server
from sessions.store.interface import AdmissionStore
from sessions.store.keys import ADMISSION_KEYS
from sessions.store.records import Admitted, Announcement, Ask, Census, News, Order, Priority, Resources, Ticket, Waiting
from sessions.store.wire import Reply

T = TypeVar("T")
NODES, HOSTS, SESSIONS, TENANTS = 32, 4, 24, 3
GRACE_S = 60.0
SMALL_PARTS = 1e-9
"""Of a sum of floats that the store counts in whole numbers."""

crowded_nodes = st.integers(0, 1).map(str)
nodes = st.one_of(crowded_nodes, crowded_nodes, st.integers(0, NODES - 1).map(str))
sessions = st.integers(0, SESSIONS - 1).map(lambda number: f"s{number}")
seconds = st.sampled_from((0.0, 0.000001, 0.5, 1.0, 1.0, 2.0, 4.999999, 5.0, 10.0, 61.0, 400.0))
amounts = st.sampled_from((0.0, 0.1, 1 / 3, 1.0, 2.0, 7.0))


def host_of(node: str) -> str:
    return f"host:{int(node) % HOSTS}"


class SideBySide(RuleBasedStateMachine):
    """`server` is set by the test."""

    server: ClassVar[RedisServer]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.exits = AsyncExitStack()
        self.passed_us = 0
        self.tickets: dict[str, Ticket] = {}
        """As their nodes believe, some of them wrongly."""
        self.told: dict[str, tuple[int, int, Ask]] = {}
        """By session: the position, when, and for what wish."""
        self.used: Mapping[str, float] = {}
        self.claims = False
        self.cursors = (dict.fromkeys(map(str, range(NODES)), "0"), dict.fromkeys(map(str, range(NODES)), "0"))
        self.model = in_memory(settle_s=1.0)
        self.redis = self.runner.run(self.begin())
        self.both(lambda store: store.census())

    async def begin(self) -> TimedAdmission:
        await flush(self.server)
        return await self.exits.enter_async_context(in_redis(self.server.url, settle_s=1.0))

    def both(self, call: Callable[[AdmissionStore], Awaitable[T]]) -> T:
        async def each() -> tuple[T, T]:
            return await call(self.model.store), await call(self.redis.store)

        expected, got = self.runner.run(each())
        assert got == expected
        return expected

    # ── nodes

    @initialize(count=st.integers(0, NODES))
    def begin_with(self, count: int) -> None:
        for node in range(count):
            self.announce(str(node), 2.0, 5.0, 0.0, ready=True, draining=False, knows=False)
        self.wait(1.0)

    @rule(
        node=nodes,
        seats=st.sampled_from((0.0, 1.0, 2.0, 2.0, 9.0)),
        load=st.sampled_from((0.5, 3.0, 5.0, 5.0)),
        reserve=st.sampled_from((0.0, 0.0, 1.0)),
        ready=st.sampled_from((True, True, True, False)),
        draining=st.sampled_from((False, False, False, True)),
        knows=st.booleans(),
    )
    def announce(self, node: str, seats: float, load: float, reserve: float, ready: bool, draining: bool, knows: bool) -> None:
        announcement = Announcement(
            node=node,
            host=host_of(node),
            address="",
            ready=ready,
            draining=draining,
            capacity={f"node:{node}:seats": seats, f"{host_of(node)}:load": load},
            reserve={f"node:{node}:seats": reserve},
            grace_s=GRACE_S,
        )
        held = [ticket for ticket in self.tickets.values() if ticket.node == node] if knows else []
        self.claims = bool(held)
        for session_id in self.both(lambda store: store.announce(announcement, held))[1]:
            del self.tickets[session_id]

    @rule(node=nodes)
    def renew(self, node: str) -> None:
        self.both(lambda store: store.renew(node, 10.0))

    @rule(node=nodes)
    def crash(self, node: str) -> None:
        self.both(lambda store: store.node_gone(node))

    def order(self, node: str, verb: str, session: str) -> None:
        self.both(lambda store: store.order(node, Order(verb, session)))

    @rule(node=nodes)
    def listen(self, node: str) -> None:
        self.order(node, "close", "")

        async def each() -> Sequence[Sequence[News]]:
            heard: list[Sequence[News]] = []  # an order is among them, or Redis would wait
            for timed, cursors in zip((self.model, self.redis), self.cursors, strict=True):
                cursors[node], news = await timed.store.news(node, cursors[node], 0.0)
                heard.append(news)
            return heard

        expected, got = self.runner.run(each())
        assert got == expected

    # ── sessions

    @rule(
        session=sessions,
        node=nodes,
        tenant=st.integers(0, TENANTS - 1),
        cost=st.tuples(amounts, amounts, amounts),
        quota=st.sampled_from((None, None, 0.0, 2.0, 7.0)),
        priority=st.sampled_from(Priority),
        weight=st.sampled_from((0.3, 1.0, 1.0, 5.0)),
        may_wait=st.sampled_from((True, True, True, False)),
        longest_queue=st.sampled_from((0, 3, 100)),
    )
    def ask(
        self,
        session: str,
        node: str,
        tenant: int,
        cost: tuple[float, float, float],
        quota: float | None,
        priority: Priority,
        weight: float,
        may_wait: bool,
        longest_queue: int,
    ) -> None:
        names = (f"node:{node}:seats", f"{host_of(node)}:load", f"tenant:{tenant}:sessions")
        wish = Ask(
            session_id=session,
            tenant=str(tenant),
            kind=("voice", "request")[tenant % 2],
            node=node,
            cost=dict(zip(names, cost, strict=True)),
            quota={} if quota is None else {names[2]: quota},
            priority=priority,
            weight=weight,
            life_s=30.0,
            may_wait=may_wait,
            longest_queue=longest_queue,
            longest_wait_s=30.0,
        )
        self.asks(wish)

    @rule(
        who=st.lists(sessions, min_size=1, max_size=8),
        node=crowded_nodes,
        priority=st.sampled_from((Priority.RESUME, Priority.INTERACTIVE, Priority.INTERACTIVE)),
    )
    def rush(self, who: Sequence[str], node: str, priority: Priority) -> None:
        """Of equal wishes, as there are most: so that it comes to crowds."""
        cost: Resources = {f"node:{node}:seats": 1, f"{host_of(node)}:load": 1}
        for session in who:
            tenant = str(int(session[1:]) % TENANTS)
            self.asks(Ask(session_id=session, tenant=tenant, kind="voice", node=node, cost=cost, priority=priority))

    def asks(self, wish: Ask) -> None:
        decision = self.both(lambda store: store.ask(wish))
        last = self.told.pop(wish.session_id, None)
        if isinstance(decision, Admitted):
            self.tickets[wish.session_id] = decision.ticket
        if isinstance(decision, Waiting):
            if last is not None and self.passed_us - last[1] < wish.place_s * 1e6 and wish == last[2]:
                assert decision.position <= last[0]
            self.told[wish.session_id] = decision.position, self.passed_us, wish

    @rule(session=sessions, node=nodes)
    def release(self, session: str, node: str) -> None:
        """Of the node that has it, in most cases."""
        node = self.tickets[session].node if session in self.tickets else node
        self.told.pop(session, None)
        self.both(lambda store: store.release(session, node))
        self.tickets.pop(session, None)

    @rule(session=sessions, keep_s=seconds, lend_after_s=seconds)
    def keep(self, session: str, keep_s: float, lend_after_s: float) -> None:
        node = self.tickets[session].node if session in self.tickets else "0"
        self.both(lambda store: store.keep(session, node, keep_s, lend_after_s))

    @rule(session=sessions, audio_s=st.floats(0, 1e6), limit=st.sampled_from((0, 1, 100)))
    def look(self, session: str, audio_s: float, limit: int) -> None:
        self.both(lambda store: store.bill("0", session, {"audio_s": audio_s, "tokens": limit}))
        self.both(lambda store: store.bills())
        self.both(lambda store: store.nodes())
        self.both(lambda store: store.orphans(limit))

    @rule(passing_s=seconds)
    def wait(self, passing_s: float) -> None:
        self.passed_us += round(passing_s * 1e6)

        async def each() -> None:
            await self.model.pass_time(passing_s)
            await self.redis.pass_time(passing_s)

        self.runner.run(each())

    # ── what always holds

    @invariant()
    def nobody_is_seated_beyond_capacity(self) -> None:
        """There may be less than is taken when a node dies, or has registered what it holds; then nothing is added."""
        census = self.both(lambda store: store.census())
        for name, used in census.resources.items():
            if not name.startswith("tenant:") and not self.claims:
                assert used.used <= max(used.capacity, self.used.get(name, 0.0)) + SMALL_PARTS, name
        self.used = {name: used.used for name, used in census.resources.items()}
        self.claims = False

    def teardown(self) -> None:
        try:
            self.wait(10_000.0)
            for _ in range(20):  # each takes care of a part
                self.both(lambda store: store.census())
            census = self.both(lambda store: store.census())
            assert census == Census(active=0, lent=0, waiting=0, resources={}, tenants={}, wait_error_s=census.wait_error_s)
            assert self.both(lambda store: store.nodes()) == ()
            assert {key for key in self.runner.run(keys(self.server)) if not key.startswith(KEPT)} == set()
        finally:
            self.runner.run(self.exits.aclose())
            self.runner.close()


KEPT = tuple(ADMISSION_KEYS[name] for name in ("STATE", "GIVEN", "ORPHANS", "DEPARTED", "INTERVAL", "BILLS", "BILLED", "NEWS"))
"""When all have gone: averages, bills, and what is bounded by count or by time."""


async def flush(server: RedisServer) -> None:
    await command(server, "FLUSHALL")


async def keys(server: RedisServer) -> list[str]:
    return [key.decode() for key in msgspec.convert(await command(server, "KEYS", "*"), list[bytes])]


async def command(server: RedisServer, *words: str) -> Reply:
    wire = one_server(("127.0.0.1", server.port))
    try:
        return await wire.ask(*words)
    finally:
        await wire.close()


async def test_the_functions_decide_as_the_model_does(tmp_path: Path) -> None:
    await drive(tmp_path, examples=25, steps=60)


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_the_functions_decide_as_the_model_does_for_long(tmp_path: Path) -> None:
    await drive(tmp_path, examples=400, steps=120)


async def drive(folder: Path, examples: int, steps: int) -> None:
    async with running_redis(folder) as server:
        machine = type("Machine", (SideBySide,), {"server": server})
        long = settings(max_examples=examples, stateful_step_count=steps)
        await asyncio.to_thread(run_state_machine_as_test, machine, settings=long)
