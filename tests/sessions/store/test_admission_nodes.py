"""Nodes that live, die, come back, and hear; a store that has lost its data. In memory and in Redis."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from fakes.admission_store import TimedAdmission, announced, in_memory, in_redis, positions, seated, wish
from fakes.redis_server import running_redis
from sessions.store.admission_limits import NEWS_KEPT
from sessions.store.records import Evicted, NodeSeen, Offered, Order, Priority, Refusal, Refused, Renewed, Ticket, Used


async def test_one_renewal_keeps_all_tickets_of_a_node(admission: TimedAdmission) -> None:
    incarnation, lost = await admission.store.announce(announced("a", 9))
    assert lost == ()
    await seated(admission.store, wish("s"), wish("t"))
    for _ in range(5):
        await admission.pass_time(9)
        assert await admission.store.renew("a", 10) == Renewed(incarnation, True, 2)
    await admission.pass_time(10)
    assert await admission.store.renew("a", 10) == Renewed(incarnation, False, 2)
    assert await admission.store.renew("z", 10) == Renewed(incarnation, False, 0)


async def test_what_there_is_is_seen(admission: TimedAdmission) -> None:
    await admission.store.announce(msgspec.structs.replace(announced("a", 2, load=5), address="unix:/a"))
    await seated(admission.store, wish("s"))
    await admission.pass_time(4)
    expected = NodeSeen(node="a", host="h", address="unix:/a", ready=True, draining=False, lease_s=6, tickets=1)
    assert await admission.store.nodes() == (expected,)
    resources = (await admission.store.census()).resources
    assert resources == {"host:h:load": Used(1, 5), "node:a:seats": Used(1, 2), "tenant:t:sessions": Used(1, 0)}


async def test_a_host_has_what_its_living_nodes_say(admission: TimedAdmission) -> None:
    for node, load in (("a", 5), ("b", 5), ("a", 3)):
        await admission.store.announce(announced(node, 1, load=load))
    assert (await admission.store.census()).resources["host:h:load"] == Used(0, 3)
    await admission.store.node_gone("a")
    assert (await admission.store.census()).resources == {"host:h:load": Used(0, 3), "node:b:seats": Used(0, 1)}
    await admission.store.node_gone("b")
    assert (await admission.store.census()).resources == {}


# ── a node dies


async def test_the_seats_of_a_dead_node_are_for_its_sessions_first(admission: TimedAdmission) -> None:
    for node in ("a", "b"):
        await admission.store.announce(msgspec.structs.replace(announced(node, 9, load=2), lease_s=100))
    await seated(admission.store, wish("s"), wish("t"))
    assert await admission.store.node_gone("a") == ("s", "t")
    assert await admission.store.node_gone("a") == ("s", "t")
    await positions(admission.store, [wish("new", "b")])
    await seated(admission.store, wish("s", "b", priority=Priority.RESUME))
    await admission.pass_time(4)
    await positions(admission.store, [wish("new", "b")])
    await admission.pass_time(4)
    await positions(admission.store, [wish("new", "b")])
    await admission.pass_time(2)
    await seated(admission.store, wish("new", "b"))
    assert await admission.store.orphans(9) == ("t",)


async def test_the_tickets_of_a_dead_node_end(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 9))
    await seated(admission.store, wish("s"), wish("t"))
    await admission.store.node_gone("a")
    await admission.pass_time(59)
    assert (await admission.store.census()).active == 2
    await admission.pass_time(1)
    assert (await admission.store.census()).active == 0
    assert await admission.store.nodes() == ()
    assert await admission.store.orphans(9) == ("s", "t")


async def test_a_node_that_was_only_away_has_its_tickets_again(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 2))
    tickets = await seated(admission.store, wish("s"), wish("t"))
    await admission.pass_time(25)
    assert not (await admission.store.renew("a", 10)).known
    assert (await admission.store.census()).lent == 2
    assert (await admission.store.announce(announced("a", 2), tickets))[1] == ()
    assert (await admission.store.census()).lent == 0
    await admission.pass_time(9)
    assert (await admission.store.renew("a", 10)).tickets == 2


async def test_a_node_that_was_away_hears_which_seats_were_given_away(admission: TimedAdmission) -> None:
    for node in ("a", "b"):
        await admission.store.announce(msgspec.structs.replace(announced(node, 9, load=2), lease_s=30))
    tickets = await seated(admission.store, wish("s"), wish("t"))
    await admission.store.node_gone("a")
    await admission.pass_time(10)
    await admission.store.renew("b", 30)
    await seated(admission.store, wish("new", "b"))
    assert (await admission.store.announce(announced("a", 9, load=2), tickets))[1] == ("s",)
    assert (await admission.store.news("a", "0", 0.01))[1] == (Evicted("s", tickets[0].number),)
    assert await admission.store.orphans(9) == ("s",)


async def test_a_node_that_starts_anew_leaves_its_sessions_their_seats(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 2))
    await seated(admission.store, wish("s"), wish("t"))
    await admission.store.node_gone("a")
    await admission.store.announce(announced("a", 2))
    assert (await admission.store.renew("a", 10)).tickets == 0
    await positions(admission.store, [wish("new")])
    await seated(admission.store, wish("s", priority=Priority.RESUME))
    assert (await admission.store.renew("a", 30)).tickets == 1
    await admission.pass_time(4)
    await positions(admission.store, [wish("new")])
    await admission.pass_time(4)
    await positions(admission.store, [wish("new")])
    await admission.pass_time(2)
    await seated(admission.store, wish("new"))
    assert await admission.store.orphans(9) == ("t",)


async def test_what_a_living_node_does_not_know_is_given_back_at_once_but_for_offers(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 2))
    tickets = await seated(admission.store, wish("s"), wish("t"))
    await positions(admission.store, [wish("u"), wish("v")])
    assert (await admission.store.announce(announced("a", 2), tickets[:1]))[1] == ()
    assert (await admission.store.news("a", "0", 0.01))[1] == (Offered("u"),)
    await admission.store.announce(announced("a", 2), tickets[:1])
    await seated(admission.store, wish("u"))


async def test_a_node_cannot_claim_what_another_one_has(admission: TimedAdmission) -> None:
    for node in ("a", "b"):
        await admission.store.announce(announced(node, 2))
    tickets = await seated(admission.store, wish("s"))
    await seated(admission.store, wish("s", "b", priority=Priority.RESUME))
    assert (await admission.store.announce(announced("a", 2), tickets))[1] == ("s",)
    await admission.store.release("s", "b")
    assert (await admission.store.announce(announced("a", 2), tickets))[1] == ("s",)


# ── the store has lost its data


async def three_seated() -> list[Ticket]:
    """At another store."""
    before = in_memory()
    await before.store.announce(announced("a", 3))
    return await seated(before.store, *(wish(session) for session in ("s", "t", "u")))


@pytest.mark.parametrize("kind", ["memory", "redis"])
async def test_tickets_that_a_store_has_lost_are_taken_up_beyond_capacity_while_it_settles(kind: str, tmp_path: Path) -> None:
    if kind == "memory":
        await takes_up_all(in_memory(settle_s=1))
    else:
        async with running_redis(tmp_path) as server, in_redis(server.url, settle_s=1) as admission:
            await takes_up_all(admission)


async def takes_up_all(admission: TimedAdmission) -> None:
    tickets = await three_seated()
    await admission.store.announce(announced("a", 2), tickets)
    assert (await admission.store.census()).resources["node:a:seats"] == Used(3, 2)
    assert await seated(admission.store, wish("s")) == tickets[:1]
    await positions(admission.store, [wish("new")])
    await admission.pass_time(1)
    for session in ("s", "t"):
        await admission.store.release(session, "a")
    (new,) = await seated(admission.store, wish("new"))
    assert new.number > tickets[2].number


async def test_later_they_are_taken_up_only_where_there_is_room(admission: TimedAdmission) -> None:
    """Their node was away so long that it was mute, and others may have its seats."""
    tickets = await three_seated()
    assert (await admission.store.announce(announced("a", 2), tickets))[1] == ("u",)
    assert (await admission.store.census()).resources["node:a:seats"] == Used(2, 2)


@pytest.mark.parametrize("kind", ["memory", "redis"])
async def test_while_a_store_is_new_only_those_who_come_back_are_let_in(kind: str, tmp_path: Path) -> None:
    if kind == "memory":
        await settles(in_memory(settle_s=10))
    else:
        async with running_redis(tmp_path) as server, in_redis(server.url, settle_s=10) as admission:
            await settles(admission)


async def settles(admission: TimedAdmission) -> None:
    assert await admission.store.settling_s() == 10
    await admission.store.announce(msgspec.structs.replace(announced("a", 9), lease_s=60))
    assert await admission.store.ask(wish("hasty", may_wait=False)) == Refused(Refusal.SETTLING, "", 10)
    await positions(admission.store, [wish("patient")])
    await seated(admission.store, wish("back", priority=Priority.RESUME))
    await admission.pass_time(4)
    await positions(admission.store, [wish("patient")])
    await admission.pass_time(4)
    await positions(admission.store, [wish("patient")])
    assert await admission.store.settling_s() == 2
    await admission.pass_time(2)
    assert await admission.store.settling_s() == 0
    await admission.store.renew("a", 60)
    assert (await admission.store.news("a", "0", 0.01))[1] == (Offered("patient"),)


# ── news


async def test_news_are_heard_from_the_cursor_on_each_once(admission: TimedAdmission) -> None:
    orders = [Order("close", f"s{number}") for number in range(3)]
    await admission.store.order("a", Order("drain", ""))
    cursor, nothing = await admission.store.news("a", "", 0.01)
    assert nothing == ()
    for order in orders:
        await admission.store.order("a", order)
    await admission.store.order("b", Order("close", "other"))
    later, heard = await admission.store.news("a", cursor, 5)
    assert heard == tuple(orders)
    assert (await admission.store.news("a", cursor, 5))[1] == heard
    assert await admission.store.news("a", later, 0.01) == (later, ())


async def test_who_waits_for_news_hears_them_when_they_come(admission: TimedAdmission) -> None:
    cursor, _ = await admission.store.news("a", "", 0.01)
    async with asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(admission.store.news("a", cursor, 30))
        await admission.store.order("a", Order("drain", ""))
    assert hearing.result()[1] == (Order("drain", ""),)


async def test_news_of_a_node_that_does_not_listen_are_bounded(admission: TimedAdmission) -> None:
    cursor, _ = await admission.store.news("a", "", 0.01)
    for number in range(NEWS_KEPT + 5):
        await admission.store.order("a", Order("close", f"s{number}"))
    heard = (await admission.store.news("a", cursor, 5))[1]
    assert len(heard) <= NEWS_KEPT
    assert heard[-1] == Order("close", f"s{NEWS_KEPT + 4}")
