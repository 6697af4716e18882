"""Seats, places and refusals as a session meets them."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import msgspec
import pytest

from fakes.faulty_store import Fault
from fakes.nodes import LEASE_S, THIRD_S, Cluster, OneNode, applicant, cluster
from sessions.admission.admission import Applicant, HasToWait, NotAdmitted, Seat
from sessions.admission.node import SeatTaken
from sessions.admission.settings import AdmissionSettings
from sessions.identity.tenants import TenantSettings
from sessions.store.interface import StoreDown
from sessions.store.records import Order, Refusal, Waiting


class Line:
    """Somebody who waits: what he was told, and his seat when he has it, until `go`."""

    def __init__(self, one: OneNode, who: Applicant) -> None:
        self.told: list[Waiting] = []
        self.seated: asyncio.Future[Seat] = asyncio.get_running_loop().create_future()
        self.placed = asyncio.Event()
        self.go = asyncio.Event()
        self.task = asyncio.create_task(self._stand(one, who))

    async def _stand(self, one: OneNode, who: Applicant) -> None:
        try:
            async with one.admission.seat(who, self._hear) as seat:
                self.seated.set_result(seat)
                await self.go.wait()
        except (NotAdmitted, StoreDown) as refused:
            self.seated.set_exception(refused)

    def _hear(self, place: Waiting) -> None:
        self.told.append(place)
        self.placed.set()

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


@asynccontextmanager
async def full(made: Cluster, seats: int = 2) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for number in range(seats):
            await stack.enter_async_context(made.nodes[0].admission.seat(applicant(f"first{number}")))
        yield


async def test_whoever_waits_gets_the_seat_that_becomes_free_in_the_order_in_which_they_came() -> None:
    async with cluster() as made:
        async with full(made):
            first, second = Line(made.nodes[0], applicant("a")), Line(made.nodes[0], applicant("b"))
            await first.placed.wait()
            await second.placed.wait()
            assert [first.told[0].position, second.told[0].position] == [1, 2]
        await asyncio.gather(first.seated, second.seated)
        assert await made.active() == 2
        for line in (first, second):
            line.go.set()
            await line.task


async def test_who_waits_hears_at_once_of_the_seat_and_does_not_ask_meanwhile() -> None:
    async with cluster(settings=AdmissionSettings(place_s=600)) as made:
        async with full(made):
            line = Line(made.nodes[0], applicant("a"))
            await line.placed.wait()
        async with asyncio.timeout(5):
            await line.seated
        assert len(line.told) == 1
        await line.leave()


async def test_a_place_is_left_with_its_task_and_whoever_stands_behind_moves_up() -> None:
    async with cluster() as made, full(made):
        first, second = Line(made.nodes[0], applicant("a")), Line(made.nodes[0], applicant("b"))
        await second.placed.wait()
        await first.leave()
        assert await made.waiting() == 1
        await second.leave()
        assert await made.waiting() == 0


@pytest.mark.parametrize("what", ["quota", "nothing"])
async def test_a_tenant_that_has_what_it_may_have_is_refused_and_others_are_not(what: str) -> None:
    limit = 0 if what == "nothing" else 1
    async with cluster(tenants={"small": TenantSettings(sessions=limit)}) as made, AsyncExitStack() as stack:
        admission = made.nodes[0].admission
        if limit:
            await stack.enter_async_context(admission.seat(applicant("a", "small")))
        with pytest.raises(NotAdmitted) as refused:
            await stack.enter_async_context(admission.seat(applicant("b", "small")))
        assert refused.value.reason is Refusal.QUOTA
        assert refused.value.resource == "tenant:small:sessions"
        assert ("end one first" in str(refused.value)) == bool(limit)
        assert ("quota to 0" in str(refused.value)) == (not limit)
        await stack.enter_async_context(admission.seat(applicant("c", "other")))


async def test_more_than_there_is_at_all_is_refused_and_named() -> None:
    async with cluster() as made:
        giant = msgspec.structs.replace(applicant("a"), cost={"host:host:load": 2_000_000})
        with pytest.raises(NotAdmitted) as refused:
            async with made.nodes[0].admission.seat(giant):
                pass
        assert (refused.value.reason, refused.value.resource) == (Refusal.TOO_BIG, "host:host:load")


async def test_a_full_waiting_room_refuses_and_nobody_waits_who_will_not() -> None:
    async with cluster(settings=AdmissionSettings(longest_queue=1)) as made, full(made):
        first = Line(made.nodes[0], applicant("a"))
        await first.placed.wait()
        for more in (applicant("b"), applicant("c", wait_s=0)):
            with pytest.raises(NotAdmitted) as refused:
                async with made.nodes[0].admission.seat(more):
                    pass
            assert refused.value.reason is Refusal.FULL
            assert refused.value.retry_after_s > 0
        await first.leave()


async def test_a_visitor_keeps_its_place_while_it_asks_again_and_loses_it_else() -> None:
    async with cluster() as made:
        admission = made.nodes[0].admission

        async def visit(session_id: str) -> int:
            with pytest.raises(HasToWait) as told:
                async with admission.seat(applicant(session_id, visits=True)):
                    pass
            return told.value.waiting.position

        async with full(made):
            assert [await visit("a"), await visit("b"), await visit("a")] == [1, 2, 1]
            for _ in range(4):
                await made.clock.advance(3)
                assert await visit("b") <= 2
            assert await visit("b") == 1  # the other one has not asked for 12 s
            assert await made.waiting() == 1
        async with admission.seat(applicant("b", visits=True)):
            assert await made.active() == 1


async def test_a_session_has_one_seat() -> None:
    async with cluster() as made, made.nodes[0].admission.seat(applicant("a")):
        with pytest.raises(SeatTaken):
            async with made.nodes[0].admission.seat(applicant("a")):
                pass
        assert await made.active() == 1


async def test_a_kept_seat_is_lent_when_a_newcomer_needs_it_and_its_session_hears_so() -> None:
    async with cluster() as made, full(made, seats=1):
        admission = made.nodes[0].admission
        async with admission.seat(applicant("away")) as away:
            assert await away.keep(60, 0)
            async with admission.seat(applicant("new")):
                async with asyncio.timeout(5):
                    await away.lost.wait()
                assert not await away.take_up()
                assert await made.active() == 2


async def test_whoever_comes_back_in_time_has_the_full_seat_again() -> None:
    async with cluster() as made, full(made, seats=1):
        admission = made.nodes[0].admission
        async with admission.seat(applicant("away")) as away:
            assert await away.keep(60, 0)
            assert await away.take_up()
            with pytest.raises(NotAdmitted):
                async with admission.seat(applicant("new", wait_s=0)):
                    pass
            assert not away.lost.is_set()


async def test_a_kept_seat_is_lost_when_its_time_is_over() -> None:
    async with cluster() as made, made.nodes[0].admission.seat(applicant("away")) as away:
        assert await away.keep(60, 60)
        await made.clock.advance(59)
        assert not away.lost.is_set()
        await made.clock.advance(5)
        async with asyncio.timeout(5):
            await away.lost.wait()


async def test_a_session_that_goes_on_elsewhere_leaves_its_ticket_to_the_other_node_and_to_nobody_else() -> None:
    async with cluster(2, host_seats=1) as made:
        async with made.nodes[0].admission.seat(applicant("a")) as here:
            here.stays_behind = True
        await made.clock.advance(LEASE_S - 1)
        with pytest.raises(NotAdmitted):
            async with made.nodes[0].admission.seat(applicant("b", wait_s=0)):
                pass
        async with made.nodes[1].admission.seat(applicant("a", wait_s=0)):
            await made.clock.advance(3 * LEASE_S)
            assert await made.active() == 1


async def test_a_ticket_for_which_no_other_node_comes_is_given_back() -> None:
    async with cluster(2, host_seats=1) as made:
        async with made.nodes[0].admission.seat(applicant("a")) as here:
            here.stays_behind = True
        await made.clock.advance(LEASE_S + 2 * THIRD_S)
        assert await made.active() == 0


async def test_who_is_cancelled_twice_gives_the_seat_back_all_the_same() -> None:
    async with cluster() as made:
        one = made.nodes[0]
        line = Line(one, applicant("a"))
        await line.seated
        one.line.next["release"].append(Fault.HELD_BEFORE)
        line.task.cancel()
        await one.line.holding.wait()
        await line.leave()
        assert await made.active() == 1
        one.line.let_on.set()
        await made.clock.advance(0)
        assert await made.active() == 0


async def test_a_late_word_of_the_node_before_takes_nothing_away() -> None:
    async with cluster(2) as made, AsyncExitStack() as there:
        async with made.nodes[0].admission.seat(applicant("a")):
            await there.enter_async_context(made.nodes[1].admission.seat(applicant("a")))
        assert await made.active() == 1


async def test_newcomers_are_refused_while_the_store_is_down_and_who_waited_waits_on() -> None:
    async with cluster() as made, AsyncExitStack() as stack:
        one = made.nodes[0]
        await stack.enter_async_context(full(made))
        waits = Line(one, applicant("a"))
        await waits.placed.wait()
        one.line.down = True
        with pytest.raises(StoreDown):
            async with one.admission.seat(applicant("b")):
                pass
        await stack.aclose()  # the word of it is lost
        one.line.down = False
        await made.clock.advance(THIRD_S)
        await waits.seated
        waits.go.set()
        await waits.task


async def test_a_question_that_is_lost_costs_nobody_the_seat_that_was_offered() -> None:
    async with cluster(settings=AdmissionSettings(place_s=600)) as made:
        one = made.nodes[0]
        async with full(made):
            line = Line(one, applicant("a"))
            await line.placed.wait()
            one.line.next["ask"].append(Fault.LOST_QUESTION)
        async with asyncio.timeout(5):
            await line.seated
        assert one.line.calls["ask"] == 5
        await line.leave()


async def test_news_of_a_ticket_before_do_not_end_the_one_after() -> None:
    async with cluster(host_seats=1) as made:
        one = made.nodes[0]
        one.line.next["news"].append(Fault.HELD_AFTER)
        await made.store.order("node0", Order("look", ""))
        await made.clock.advance(0)  # the node listens anew
        async with one.admission.seat(applicant("away")) as away:
            assert await away.keep(60, 0)
            async with one.admission.seat(applicant("new")):
                await one.line.holding.wait()
            first = away.ticket.number
            assert await away.take_up()
            assert away.ticket.number > first
            one.line.let_on.set()
            await made.clock.advance(0)
            assert not away.lost.is_set()
            assert [ticket.session_id for ticket in one.node.tickets] == ["away"]


async def test_newcomers_wait_while_a_new_store_may_still_hear_of_those_who_run() -> None:
    async with cluster(settle_s=0.05, settings=AdmissionSettings(place_s=0.3)) as made:
        line = Line(made.nodes[0], applicant("a"))
        refused = Line(made.nodes[0], applicant("b", wait_s=0))
        with pytest.raises(NotAdmitted) as told:
            await refused.seated
        assert told.value.reason is Refusal.SETTLING
        await made.clock.advance(1)
        await line.seated
        await line.leave()


async def test_a_ticket_that_an_announcement_could_not_know_of_is_asked_for_again() -> None:
    async with cluster() as made:
        one = made.nodes[0]
        one.line.next["ask"].append(Fault.HELD_AFTER)
        line = Line(one, applicant("a"))
        await one.line.holding.wait()
        one.node.changed()  # tells the store of no ticket, so it takes back the one whose answer is on its way
        await made.clock.advance(0)
        one.line.let_on.set()
        await line.seated
        assert await made.active() == 1
        assert one.line.calls["ask"] == 2
        line.go.set()
        await line.task


@pytest.mark.parametrize("fault", [None, Fault.HELD_BEFORE, Fault.HELD_AFTER])
@pytest.mark.parametrize("store_breaks", [False, True])
async def test_an_open_cancelled_a_hundred_times_leaves_no_seat_behind(fault: Fault | None, store_breaks: bool) -> None:
    draw = random.Random(1)
    async with cluster(host_seats=4) as made:
        one = made.nodes[0]
        for number in range(100):
            if fault is not None:
                one.line.next["ask"].append(fault)
            if store_breaks:
                one.line.next["release"].append(draw.choice([Fault.LOST_ANSWER, Fault.LOST_QUESTION]))
            line = Line(one, applicant(f"s{number}"))
            for _ in range(draw.randrange(6)):
                await asyncio.sleep(0)
            await line.leave()
            one.line.next["ask"].clear()
        one.line.next.clear()
        await made.clock.advance(20)  # places of which the store has not heard that they were left end by themselves
        assert await made.active() == 0
        async with full(made, seats=4):
            assert await made.waiting() == 0


@pytest.mark.parametrize("seed", range(3))
async def test_over_admission_does_not_happen_whatever_breaks(seed: int) -> None:
    await crowd(seed, nodes=32, people=200)


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_over_admission_does_not_happen_for_a_long_time() -> None:
    for seed in range(100, 115):
        await crowd(seed, nodes=32, people=500)


async def crowd(seed: int, nodes: int, people: int) -> None:
    """Everybody comes to some node, waits, talks, is cancelled at some moment; lines break; at no time more talk than there are
    seats, and at the end nothing is left."""
    draw, seats = random.Random(seed), 10
    async with cluster(nodes, host_seats=seats, settings=AdmissionSettings(longest_queue=people)) as made:
        talking: set[str] = set()
        most = 0

        async def person(number: int) -> None:
            nonlocal most
            one, session_id = draw.choice(made.nodes), f"p{number}"
            with suppress(StoreDown, NotAdmitted):
                async with one.admission.seat(applicant(session_id)):
                    talking.add(session_id)
                    most = max(most, len(talking))
                    try:
                        for _ in range(draw.randrange(30)):
                            await asyncio.sleep(0)
                    finally:
                        talking.discard(session_id)

        tasks = [asyncio.create_task(person(number)) for number in range(people)]
        while any(not task.done() for task in tasks):
            one = draw.choice(made.nodes)
            match draw.randrange(8):
                case 0:
                    one.line.next[draw.choice(["ask", "release", "renew", "announce"])].append(
                        draw.choice([Fault.LOST_ANSWER, Fault.LOST_QUESTION])
                    )
                case 1:
                    draw.choice(tasks).cancel()
                case 2:
                    one.node.changed()
                case _:
                    await made.clock.advance(draw.random())
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in made.nodes:
            one.line.next.clear()
        assert most <= seats
        await made.clock.advance(20)
        assert await made.active() == 0
        assert await made.waiting() == 0


async def test_a_ticket_lives_no_longer_than_the_key_allows() -> None:
    who = applicant("a", life_s=3_600.0)
    brief = msgspec.structs.replace(who, principal=msgspec.structs.replace(who.principal, longest_session_s=60.0))
    async with cluster() as made, made.nodes[0].admission.seat(brief) as seat:
        assert seat.ticket.life_s == 60.0
