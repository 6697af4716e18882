"""The Functions and the Python model side by side: whatever nodes and clients do, in whatever order, both answer the same."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from fakes.redis_server import running_redis
from fakes.session_stores import Stores, in_memory, in_redis, one_server
from sessions.states import State
from sessions.store import session_limits as limits
from sessions.store.interface import Fenced, SessionStore, UnknownSession
from sessions.store.records import Claimed, Entry, Fence, SessionRecord, Write
from sessions.store.servers import Place

IDS = st.sampled_from(["s1", "s2"])
NODES = st.sampled_from(["a", "b", "c"])
TOKENS = st.sampled_from([b"", *(bytes([n]) * 32 for n in (0, 1, 128, 255))])
EVENTS = st.sampled_from([0, 2, limits.JOURNAL_BYTES // 3]).map(bytes)
INPUTS = st.sampled_from([0, 2, limits.INPUT_BYTES // 2]).map(bytes)
SECONDS = st.sampled_from([0.000001, 0.5, 5.0, 10.0, 29.999999, 60.0, 61.0])
WRITES = st.builds(
    Write,
    number=st.integers(0, 6),
    events=st.lists(st.builds(Entry, st.integers(1, 30), EVENTS), max_size=4, unique_by=lambda entry: entry.seq).map(
        lambda entries: tuple(sorted(entries, key=lambda entry: entry.seq))
    ),
    promised=st.integers(0, 40),
    inputs=st.lists(INPUTS, max_size=3).map(tuple),
    snapshot=st.none() | st.sampled_from([b"", b"snapshot"]),
    results=st.dictionaries(
        st.sampled_from(["e1", "e2", "é"]), st.sampled_from([0, limits.RESULT_BYTES // 2]).map(bytes), max_size=3
    ),
    acknowledged=st.sampled_from([0, 0, 3, 20, 50]),
    usage=st.dictionaries(st.sampled_from(["s", "tokens"]), st.floats(0, 1e9), max_size=2),
    state=st.none() | st.sampled_from([State.ACTIVE, State.DETACHED, State.DETACHED, State.CLOSING]),
)


class Machine(RuleBasedStateMachine):
    """`place` is a server of Redis, empty or not."""

    place: Place

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._stores: tuple[Stores, ...] = ()
        self._fences = [Fence(0, 0)]
        """All that were given, and one that was not."""

    def teardown(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    @initialize()
    def begin(self) -> None:
        self._runner.run(self._begin())

    async def _begin(self) -> None:
        wire = one_server(self.place)
        await wire.ask("FLUSHALL")
        await wire.close()
        redis = await self._stack.enter_async_context(in_redis(f"redis://{self.place[0]}:{self.place[1]}"))
        self._stores = (in_memory(), redis)

    def both(self, call: Callable[[SessionStore], Awaitable[object]]) -> object:
        model, redis = self._runner.run(self._both(call))
        assert redis == model, "the model's answer is the right one"
        return model

    async def _both(self, call: Callable[[SessionStore], Awaitable[object]]) -> tuple[object, ...]:
        return tuple([await answered(call(stores.sessions)) for stores in self._stores])

    def given(self, answer: object) -> None:
        if isinstance(answer, Fence):
            self._fences.append(answer)
        elif isinstance(answer, Claimed):
            self._fences.append(answer.fence)

    def fence(self, data: st.DataObject) -> Fence:
        return data.draw(st.sampled_from(self._fences[-3:] + self._fences[:1]), label="fence")

    @rule(seconds=SECONDS)
    def pass_s(self, seconds: float) -> None:
        for stores in self._stores:
            self._runner.run(_awaited(stores.pass_s(seconds)))

    @rule(
        session_id=IDS,
        tenant=st.sampled_from(["t", "t1"]),
        node=NODES,
        token=TOKENS,
        life_s=st.sampled_from([100.0, 3600.0]),
        grace_s=st.sampled_from([0.0, 30.0]),
        since=st.lists(TOKENS.filter(bool), max_size=2),
        above=st.none() | st.integers(0, 5),
        data=st.data(),
    )
    def open_or_restore(
        self,
        session_id: str,
        tenant: str,
        node: str,
        token: bytes,
        life_s: float,
        grace_s: float,
        since: list[bytes],
        above: int | None,
        data: st.DataObject,
    ) -> None:
        record = SessionRecord(session_id=session_id, tenant=tenant, kind="voice", model="m", life_s=life_s, grace_s=grace_s)
        if above is None:
            self.given(self.both(lambda store: store.open(record, node, 10.0, token)))
        else:
            tokens = (token, *since)
            floor = Fence(self.fence(data).incarnation, self.fence(data).number + above)
            self.given(self.both(lambda store: store.restore(record, node, 10.0, tokens, floor)))

    @rule(session_id=IDS, node=NODES, token=TOKENS, offer=TOKENS.filter(bool), high=st.booleans(), data=st.data())
    def claim(self, session_id: str, node: str, token: bytes, offer: bytes, high: bool, data: st.DataObject) -> None:
        above = self.fence(data) if high else None
        self.given(self.both(lambda store: store.claim(session_id, node, 10.0, token, offer, above=above)))

    @rule(session_id=IDS, token=TOKENS, data=st.data())
    def delivered(self, session_id: str, token: bytes, data: st.DataObject) -> None:
        fence = self.fence(data)
        self.both(lambda store: store.delivered(session_id, fence, token))

    @rule(session_id=IDS, node=NODES)
    def disown(self, session_id: str, node: str) -> None:
        self.both(lambda store: store.disown(session_id, node))

    @rule(lease_s=st.sampled_from([1.0, 10.0, 100.0]), data=st.data())
    def renew(self, lease_s: float, data: st.DataObject) -> None:
        owned = {"s1": self.fence(data), "s2": self.fence(data)}
        self.both(lambda store: store.renew_owned(owned, lease_s))

    @rule(session_id=IDS, write=WRITES, data=st.data())
    def write(self, session_id: str, write: Write, data: st.DataObject) -> None:
        fence = self.fence(data)
        self.both(lambda store: store.write(session_id, fence, write))

    @rule(session_id=IDS, after=st.integers(0, 45), data=st.data())
    def read(self, session_id: str, after: int, data: st.DataObject) -> None:
        fence = self.fence(data)
        self.both(lambda store: store.missed(session_id, fence, after))
        self.both(lambda store: store.kept(session_id, fence))

    @rule(session_id=IDS)
    def look(self, session_id: str) -> None:
        self.both(lambda store: store.owner(session_id))
        self.both(lambda store: store.look(session_id))
        for event_id in ("e1", "e2", "é"):
            self.both(lambda store, event_id=event_id: store.result(session_id, event_id))

    @rule(tenant=st.sampled_from([None, "t", "t1"]), after=st.sampled_from(["", "s1"]), limit=st.integers(1, 3))
    def sessions(self, tenant: str | None, after: str, limit: int) -> None:
        self.both(lambda store: store.sessions(tenant, after, limit))

    @rule(session_id=IDS, fenced=st.booleans(), data=st.data())
    def end(self, session_id: str, fenced: bool, data: st.DataObject) -> None:
        fence = self.fence(data) if fenced else None
        self.both(lambda store: store.end(session_id, fence))


async def answered(call: Awaitable[object]) -> object:
    """A refusal is an answer, too."""
    try:
        return await call
    except (Fenced, UnknownSession, ValueError) as refused:
        return type(refused), str(refused)


async def _awaited(call: Awaitable[None]) -> None:
    await call


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with asyncio.Runner() as runner:
        running = running_redis(tmp_path)
        server = runner.run(running.__aenter__())
        yield ("127.0.0.1", server.port)
        runner.run(running.__aexit__(None, None, None))


def compare(place: Place, examples: int, steps: int) -> None:
    Machine.place = place
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=(HealthCheck.too_slow,)
    )
    run_state_machine_as_test(Machine, settings=chosen)


def test_functions_and_model_answer_the_same(place: Place):
    compare(place, examples=25, steps=30)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_functions_and_model_answer_the_same_for_long(place: Place):
    compare(place, examples=400, steps=60)
