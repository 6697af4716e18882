"""Sessions of nodes that have died: what is billed of them, and what becomes of them."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest

from fakes.redis_server import running_redis
from fakes.whole_store import TimedStore, in_memory, in_redis
from sessions.retention.orphans import KEPT_S, Orphans
from sessions.store.records import Admitted, Announcement, Ask, Entry, Fence, SessionRecord, Write

LEASE_S, GRACE_S = 10.0, 60.0
SESSION = "sess_1"
USED = {"audio_in_s": 4.25, "tokens_out": 31.0}
COST = {"node:a:sessions": 1}


def announcement(node: str) -> Announcement:
    capacity = {f"node:{node}:sessions": 4}
    return Announcement(
        node=node, host="h", address="", ready=True, draining=False, capacity=capacity, lease_s=LEASE_S, grace_s=GRACE_S
    )


class World:
    """The store, a session of node `a` in the middle of an answer, and node `b` that looks after orphans."""

    def __init__(self, timed: TimedStore) -> None:
        self.store = timed.store
        self.wait = timed.pass_s
        self.orphans = Orphans(timed.store, "b", LEASE_S / 3, lambda session_id: timed.store.end(session_id, None))

    async def begin(self) -> Fence:
        await self.store.announce(announcement("a"))
        ask = Ask(session_id=SESSION, tenant="acme", kind="voice", node="a", cost=COST)
        assert isinstance(await self.store.ask(ask), Admitted)
        record = SessionRecord(session_id=SESSION, tenant="acme", kind="voice", model="m", life_s=3600, grace_s=GRACE_S + KEPT_S)
        fence = await self.store.open(record, "a", LEASE_S, b"token")
        await self.store.bill("acme", SESSION, {"audio_in_s": 3.0})
        await self.store.write(SESSION, fence, Write(number=1, events=(Entry(1, b"{}"),), usage={"audio_in_s": 3.5}))
        await self.store.write(SESSION, fence, Write(number=2, usage=USED))
        return fence

    async def bill(self) -> Mapping[str, float]:
        return (await self.store.bills()).get("acme", {})


@pytest.fixture(params=["memory", "redis"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[World]:
    if request.param == "memory":
        yield World(in_memory())
        return
    async with running_redis(tmp_path) as server, in_redis(server.url) as timed:
        yield World(timed)


async def test_what_the_journal_has_is_billed_and_the_session_deleted(world: World) -> None:
    await world.begin()
    await world.wait(LEASE_S + 1)
    await world.orphans.sweep()
    assert await world.bill() == {"audio_in_s": 3.0}  # it may yet be taken over
    assert await world.store.look(SESSION) is not None
    await world.wait(GRACE_S)
    await world.orphans.sweep()
    assert await world.bill() == USED
    assert await world.store.look(SESSION) is None
    await world.wait(600)
    await world.orphans.sweep()
    assert await world.bill() == USED


async def test_a_sweep_that_broke_off_is_done_again_by_another_node_and_changes_no_bill_twice(world: World) -> None:
    await world.begin()
    await world.wait(LEASE_S + GRACE_S + 1)
    assert await world.store.orphans(10) == (SESSION,)  # taken by a node that then dies
    await world.store.bill("acme", SESSION, USED)
    await world.orphans.sweep()
    assert await world.store.look(SESSION) is not None
    await world.wait(61)
    await world.orphans.sweep()
    assert await world.bill() == USED
    assert await world.store.look(SESSION) is None


async def test_a_session_that_was_taken_over_is_none(world: World) -> None:
    await world.begin()
    await world.wait(LEASE_S + 1)
    await world.store.announce(announcement("b"))
    await world.store.ask(
        Ask(session_id=SESSION, tenant="acme", kind="voice", node="b", cost={"node:b:sessions": 1}, life_s=3600)
    )
    assert await world.store.claim(SESSION, "b", 3600, b"token", b"next") is not None
    for _ in range(8):
        await world.store.renew("b", 3600)
        await world.wait(LEASE_S)
        await world.orphans.sweep()
    assert await world.store.look(SESSION) is not None


async def test_while_its_owner_lives_it_is_billed_and_left_to_it(world: World) -> None:
    """The seat was lent to somebody else a moment ago: its node ends it."""
    fence = await world.begin()
    await world.store.renew_owned({SESSION: fence}, 3600)
    await world.wait(LEASE_S + GRACE_S + 1)
    await world.orphans.sweep()
    assert await world.bill() == USED
    assert await world.store.look(SESSION) is not None
    await world.store.disown(SESSION, "a")
    await world.wait(61)
    await world.orphans.sweep()
    assert await world.store.look(SESSION) is None


async def test_a_one_shot_request_that_died_with_its_node_is_forgotten(world: World) -> None:
    await world.store.announce(announcement("a"))
    assert isinstance(
        await world.store.ask(Ask(session_id="req_1", tenant="acme", kind="request", node="a", cost=COST)), Admitted
    )
    await world.wait(LEASE_S + GRACE_S + 1)
    await world.orphans.sweep()
    await world.wait(61)
    assert await world.store.orphans(10) == ()


async def test_a_file_that_cannot_be_deleted_holds_up_no_other_session(caplog: pytest.LogCaptureFixture) -> None:
    timed = in_memory()
    world = World(timed)

    async def delete(session_id: str) -> None:
        await timed.store.end(session_id, None)
        raise PermissionError(13, "Permission denied", f"/snapshots/{session_id}")

    await world.begin()
    await world.wait(LEASE_S + GRACE_S + 1)
    await Orphans(timed.store, "b", 1.0, delete).sweep()
    assert f"/snapshots/{SESSION}" in caplog.text
    assert await world.bill() == USED
    await world.wait(61)
    assert await world.store.orphans(10) == ()
