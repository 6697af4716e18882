"""A node at its store: its lease, its tickets when the store has forgotten them, and what it is told."""

import asyncio
from collections.abc import Mapping

import pytest

from fakes.clock import Clock
from fakes.faulty_store import Fault
from fakes.nodes import LEASE_S, THIRD_S, Cluster, OneNode, applicant, cluster
from sessions.store.interface import StoreDown
from sessions.store.memory import MemoryStore
from sessions.store.records import Order, Used


async def used(made: Cluster) -> Mapping[str, Used]:
    return (await made.store.census()).resources


def forget_everything(one: OneNode, made: Cluster) -> None:
    """The store's data is gone: it is another one from now on."""
    made.clock.now_s += 1
    made.store = MemoryStore(made.clock.now_us, 0.0)
    one.line.connect(made.store)


async def test_it_renews_every_third_of_its_lease_and_counts_from_when_it_asked() -> None:
    async with cluster() as made:
        one = made.nodes[0]
        before = one.line.calls["renew"]
        await made.clock.advance(3 * THIRD_S)
        assert one.line.calls["renew"] == before + 3
        assert one.node.lease_left_s == LEASE_S
        one.line.next["renew"].append(Fault.HELD_AFTER)
        await made.clock.advance(THIRD_S)
        await made.clock.advance(4)
        one.line.let_on.set()
        await made.clock.advance(0)
        assert one.node.lease_left_s == LEASE_S - 4


async def test_one_that_leaves_is_gone_at_once_and_one_that_does_not_answer_when_its_lease_ends() -> None:
    clock: Clock
    async with cluster(2) as made:
        clock = made.clock
        made.nodes[0].line.down = True
        await clock.advance(LEASE_S - 1)
        assert [seen.node for seen in await made.store.nodes()] == ["node0", "node1"]
        await clock.advance(2)
        assert [(seen.node, seen.lease_s > 0) for seen in await made.store.nodes() if seen.lease_s > 0] == [("node1", True)]
        made.nodes[0].line.down = False
    assert [seen for seen in await made.store.nodes() if seen.lease_s > 0] == []


async def test_without_a_lease_it_says_so() -> None:
    async with cluster() as made:
        one = made.nodes[0]
        one.line.down = True
        await made.clock.advance(11)
        assert one.node.lease_left_s == 0
        with pytest.raises(StoreDown):
            one.node.check_lease()
        one.line.down = False
        await made.clock.advance(1)
        assert one.node.lease_left_s > 8
        one.node.check_lease()


async def test_after_one_word_that_was_lost_nobody_new_comes_until_the_store_has_answered() -> None:
    async with cluster() as made:
        one = made.nodes[0]
        one.line.next["renew"].append(Fault.LOST_ANSWER)
        await made.clock.advance(THIRD_S)
        assert one.node.lease_left_s == LEASE_S - THIRD_S
        with pytest.raises(StoreDown):
            one.node.check_lease()
        await made.clock.advance(1)
        one.node.check_lease()


async def test_a_seat_that_was_given_away_meanwhile_is_lost() -> None:
    async with cluster(2, host_seats=1) as made:
        cut_off, other = made.nodes
        async with cut_off.admission.seat(applicant("a")) as seat:
            cut_off.line.down = True
            await made.clock.advance(LEASE_S + 15)
            async with other.admission.seat(applicant("b")):
                assert not seat.lost.is_set()
                cut_off.line.down = False
                await made.clock.advance(1)
                assert seat.lost.is_set()
                assert cut_off.node.tickets == ()


async def test_what_another_node_has_taken_up_in_a_store_without_its_data_is_lost() -> None:
    async with cluster(2) as made:
        cut_off, other = made.nodes
        async with cut_off.admission.seat(applicant("a")) as seat:
            cut_off.line.down = True
            forget_everything(other, made)
            cut_off.line.connect(made.store)
            await made.clock.advance(THIRD_S)
            async with other.admission.seat(applicant("a")):
                cut_off.line.down = False
                await made.clock.advance(1)
                assert seat.lost.is_set()
                assert await made.active() == 1


async def test_a_store_that_has_lost_its_data_is_told_of_every_ticket() -> None:
    async with cluster() as made:
        one = made.nodes[0]
        async with one.admission.seat(applicant("a")) as seat, one.admission.seat(applicant("b")):
            forget_everything(one, made)
            assert await made.active() == 0
            await made.clock.advance(THIRD_S)
            assert await made.active() == 2
            assert (await used(made))["host:host:load"].used == 1_000_000
            assert not seat.lost.is_set()


async def test_what_the_store_believes_it_to_have_beyond_its_tickets_it_gives_back() -> None:
    async with cluster() as made:
        one = made.nodes[0]
        one.line.next["release"].append(Fault.LOST_QUESTION)
        async with one.admission.seat(applicant("a")):
            pass
        assert await made.active() == 1
        await made.clock.advance(THIRD_S)
        assert await made.active() == 0


async def test_a_life_that_is_over_is_noticed_without_the_store() -> None:
    async with cluster() as made:
        one = made.nodes[0]
        async with one.admission.seat(applicant("a", life_s=60)) as seat:
            one.line.down = True
            await made.clock.advance(59)
            assert not seat.lost.is_set()
            await made.clock.advance(2)
            assert seat.lost.is_set()
            one.line.down = False
            await made.clock.advance(1)


async def test_orders_reach_whoever_listens() -> None:
    async with cluster() as made:
        heard = asyncio.Queue[Order]()
        made.nodes[0].node.on_order(heard.put_nowait)
        await made.store.order("node0", Order("yield", "sess_1"))
        assert await heard.get() == Order("yield", "sess_1")


async def test_a_change_is_told_at_once() -> None:
    async with cluster() as made:
        made.nodes[0].node.set(draining=True)
        await made.clock.advance(0)
        assert [seen.draining for seen in await made.store.nodes()] == [True]
