"""Who is passed over when something becomes free, and whom that holds up."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fakes.admission_store import in_memory, in_redis
from fakes.redis_server import running_redis
from sessions.store.interface import AdmissionStore
from sessions.store.records import Admitted, Announcement, Ask, Offered, Refusal, Refused, Waiting

ROOM = 2


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[AdmissionStore]:
    if request.param == "memory":
        yield in_memory().store
        return
    async with running_redis(tmp_path) as server, in_redis(server.url) as timed:
        yield timed.store


async def announced(store: AdmissionStore, *nodes: str) -> None:
    for node in nodes:
        capacity = {f"node:{node}:seats": ROOM, "host:h:load": 100}
        await store.announce(
            Announcement(node=node, host="h", address="", ready=True, draining=False, capacity=capacity, lease_s=60, grace_s=60)
        )


def ask(session_id: str, tenant: str, node: str, *, quota: float = 9, may_wait: bool = True) -> Ask:
    of_tenant = f"tenant:{tenant}:sessions"
    cost = {f"node:{node}:seats": 1, "host:h:load": 1, of_tenant: 1}
    return Ask(
        session_id=session_id, tenant=tenant, kind="voice", node=node, cost=cost, quota={of_tenant: quota}, may_wait=may_wait
    )


async def offered(store: AdmissionStore, node: str) -> list[str]:
    _, news = await store.news(node, "0", 0.01)
    return [each.session_id for each in news if isinstance(each, Offered)]


async def full(store: AdmissionStore, *nodes: str) -> None:
    for node in nodes:
        for number in range(ROOM):
            assert isinstance(await store.ask(ask(f"{node}{number}", "first", node)), Admitted)


async def test_who_waits_for_one_node_does_not_hold_up_its_tenant_at_another(store: AdmissionStore) -> None:
    await announced(store, "a", "b")
    await full(store, "a", "b")
    for node in ("a", "b"):
        assert isinstance(await store.ask(ask(f"waits-{node}", "second", node)), Waiting)
    await store.release("b0", "b")
    assert await offered(store, "b") == ["waits-b"]


async def test_who_lacks_only_its_tenants_quota_does_not_hold_up_other_tenants(store: AdmissionStore) -> None:
    await announced(store, "a", "b")
    assert isinstance(await store.ask(ask("runs", "poor", "b", quota=1)), Admitted)
    await full(store, "a")
    assert isinstance(await store.ask(ask("poor", "poor", "a", quota=2)), Waiting)
    assert isinstance(await store.ask(ask("poorer", "poor", "b", quota=2)), Admitted)
    assert isinstance(await store.ask(ask("rich", "rich", "a")), Waiting)
    await store.release("a0", "a")
    assert await offered(store, "a") == ["rich"]
    await store.release("runs", "b")
    await store.release("a1", "a")
    assert await offered(store, "a") == ["rich", "poor"]


async def test_a_lent_seat_goes_to_the_tenant_that_may_have_it(store: AdmissionStore) -> None:
    """It makes room at the node for all who wait, and not in the quota of the first."""
    await announced(store, "a", "b")
    assert isinstance(await store.ask(ask("runs", "poor", "b", quota=1)), Admitted)
    await full(store, "a")
    assert isinstance(await store.ask(ask("poor", "poor", "a", quota=2)), Waiting)
    assert isinstance(await store.ask(ask("poorer", "poor", "b", quota=2)), Admitted)
    assert isinstance(await store.ask(ask("rich", "rich", "a")), Waiting)
    assert await store.keep("a0", "a", 60.0, 0.0)
    assert await offered(store, "a") == ["rich"]


async def test_a_newcomer_who_finds_no_room_takes_none_from_those_who_wait(store: AdmissionStore) -> None:
    await announced(store, "a")
    await full(store, "a")
    assert isinstance(await store.ask(ask("first-in", "second", "a")), Waiting)
    decision = await store.ask(ask("in-a-hurry", "third", "a", may_wait=False))
    assert isinstance(decision, Refused)
    assert decision.reason is Refusal.FULL
    place = await store.ask(ask("second-in", "third", "a"))
    assert isinstance(place, Waiting)
    assert place.position == 2
    await store.release("a0", "a")
    assert await offered(store, "a") == ["first-in"]
