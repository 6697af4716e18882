"""A session is acted for by one node at a time: by its lease, its fence, and what it finds in the store."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from fakes.clock import Clock
from fakes.cut_store import CutStore
from fakes.voice_client import settle
from sessions.retention.ownership import Hold, Ownership
from sessions.retention.resume_tokens import hashed
from sessions.store.interface import Fenced, StoreDown
from sessions.store.records import Entry, OwnedBy, SessionRecord, Write
from sessions.store.session_limits import OFFERED_TOKENS

LEASE_S = 9.0
TOKEN, NEXT = hashed("token"), hashed("next")
RECORD = SessionRecord(session_id="sess_1", tenant="local", kind="voice", model="m", life_s=3_600, grace_s=60)
HELLO = Write(number=1, events=(Entry(5, b"{}"),))


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = CutStore(self.clock.now_us)
        self.one = self.node("one")
        self.other = self.node("other")

    def node(self, name: str) -> Ownership:
        return Ownership(self.store, name, LEASE_S, self.clock, self.clock.sleep)


@asynccontextmanager
async def world() -> AsyncGenerator[tuple[World, Hold]]:
    """Node `one` has a session."""
    made = World()
    async with made.one.running():
        yield made, await made.one.open(RECORD, TOKEN)


async def taken(by: Ownership) -> Hold:
    answer = await by.claim("sess_1", TOKEN, NEXT)
    assert isinstance(answer, tuple)
    return answer[1]


async def test_a_lease_is_renewed_as_long_as_the_node_lives() -> None:
    async with world() as (made, hold):
        await made.clock.advance(10 * LEASE_S)
        assert not hold.muted
        assert isinstance(await made.other.claim("sess_1", TOKEN, NEXT), OwnedBy)


async def test_an_owner_that_was_stopped_says_nothing_more_and_what_it_writes_is_rejected() -> None:
    async with world() as (made, hold):
        made.clock.now_s += LEASE_S + 1  # nobody was awake to renew it
        assert hold.muted
        newer = await taken(made.other)
        assert newer.fence > hold.fence
        with pytest.raises(Fenced):
            await made.one.write(hold, HELLO)
        assert (hold.lost.is_set(), hold.muted) == (True, True)
        with pytest.raises(Fenced):
            await hold.audible()
        await made.other.write(newer, HELLO)
        assert made.store.written == [HELLO]


async def test_an_owner_that_was_stopped_hears_of_its_successor_from_its_next_renewal() -> None:
    async with world() as (made, hold):
        made.clock.now_s += LEASE_S + 1
        await taken(made.other)
        await made.one.renew()
        assert hold.lost.is_set()


async def test_who_was_stopped_and_finds_no_successor_goes_on() -> None:
    async with world() as (made, hold):
        made.clock.now_s += LEASE_S + 1
        assert hold.muted
        await made.one.renew()
        assert not hold.muted
        await made.one.write(hold, HELLO)


async def test_while_the_store_is_down_the_session_goes_on_to_the_end_of_its_lease() -> None:
    async with world() as (made, hold):
        made.store.down = True
        await made.clock.advance(LEASE_S - 0.1)
        assert not hold.muted
        await made.clock.advance(0.2)
        assert hold.muted
        assert not hold.lost.is_set()
        made.store.down = False
        await made.clock.advance(1.0)
        assert not hold.muted
        await hold.audible()


async def test_the_time_that_is_left_counts_from_when_the_renewal_was_sent() -> None:
    async with world() as (made, hold):
        renew = made.store.renew_owned

        async def slow(*wanted: object) -> object:
            made.clock.now_s += LEASE_S - 1
            return await renew(*wanted)  # pyright: ignore[reportArgumentType]  passed on as it is

        made.store.renew_owned = slow  # pyright: ignore[reportAttributeAccessIssue]  a slow line
        await made.one.renew()
        assert not hold.muted
        made.clock.now_s += 1
        assert hold.muted


@pytest.mark.parametrize("by_writing", [True, False])
async def test_what_the_store_has_lost_it_gets_back_from_its_owner(by_writing: bool) -> None:
    async with world() as (made, hold):
        before, told = hold.fence, asyncio.Event()
        hold.replaced = told.set
        made.store.lose_all()
        await (made.one.write(hold, HELLO) if by_writing else made.one.renew())
        assert hold.fence > before
        assert told.is_set()
        assert isinstance(await made.one.claim("sess_1", TOKEN, NEXT), tuple)
        assert not (await made.one.missed(hold, 0)).complete


async def test_who_comes_back_to_its_node_after_the_store_has_lost_all_finds_the_session() -> None:
    async with world() as (made, hold):
        made.store.lose_all()
        assert await made.one.claim("sess_1", NEXT, hashed("another")) is None
        assert await taken(made.one) is hold
        await made.one.write(hold, HELLO)


async def test_after_a_loss_of_data_the_token_is_good_whose_successors_were_lost_on_their_way() -> None:
    async with world() as (made, _):
        for number in range(2 * OFFERED_TOKENS):
            assert isinstance(await made.one.claim("sess_1", TOKEN, hashed(f"lost {number}")), tuple)
        made.store.lose_all()
        await made.one.renew()
        assert await made.one.claim("sess_1", hashed("lost 0"), hashed("another")) is None
        await taken(made.one)


async def test_after_a_loss_of_data_the_tokens_before_one_that_came_back_are_void() -> None:
    async with world() as (made, hold):
        await taken(made.one)
        await made.one.delivered(hold, NEXT)
        made.store.lose_all()
        await made.one.renew()
        assert await made.one.claim("sess_1", TOKEN, hashed("another")) is None
        assert isinstance(await made.one.claim("sess_1", NEXT, hashed("another")), tuple)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_what_an_older_transport_shows_late_leaves_the_newest_its_token(is_lost: bool) -> None:
    async with world() as (made, hold):
        await taken(made.one)
        newest = hashed("what the newest was offered")
        assert isinstance(await made.one.claim("sess_1", TOKEN, newest), tuple)
        await made.one.delivered(hold, NEXT)
        if is_lost:
            made.store.lose_all()
            await made.one.renew()
        assert await made.one.claim("sess_1", TOKEN, hashed("another")) is None
        assert isinstance(await made.one.claim("sess_1", newest, hashed("another")), tuple)


async def test_who_has_moved_here_is_found_by_both_tokens_after_a_loss_of_data() -> None:
    async with world() as (made, hold), made.other.running():
        await made.one.disown(hold)
        await taken(made.other)
        made.store.lose_all()
        await made.other.renew()
        await taken(made.other)


async def test_who_comes_back_to_what_was_ended_finds_nothing() -> None:
    async with world() as (made, hold):
        await made.one.end(hold)
        assert await made.one.claim("sess_1", TOKEN, NEXT) is None
        assert await made.store.look("sess_1") is None


async def test_what_was_ended_while_its_owner_was_stopped_stays_ended() -> None:
    async with world() as (made, hold):
        made.clock.now_s += LEASE_S + 1
        await made.store.end("sess_1", None)
        with pytest.raises(Fenced):
            await made.one.write(hold, HELLO)
        assert await made.store.look("sess_1") is None


async def test_a_store_that_has_lost_its_data_meanwhile_gets_it_back_also_from_an_owner_without_a_lease() -> None:
    async with world() as (made, hold):
        made.store.down = True
        await made.clock.advance(2 * LEASE_S)
        made.store.lose_all()
        made.store.down = False
        await made.clock.advance(1)
        assert not hold.muted
        assert await made.store.look("sess_1") is not None


async def test_who_comes_back_to_the_same_node_finds_the_same_hold_under_a_newer_fence() -> None:
    async with world() as (made, hold):
        before = hold.fence
        assert await taken(made.one) is hold
        assert hold.fence > before


@pytest.mark.parametrize("by_writing", [True, False])
async def test_what_goes_on_while_its_client_comes_back_is_not_fenced_out_by_it(by_writing: bool) -> None:
    async with world() as (made, hold):
        made.store.late = answered = asyncio.Event()
        claiming = asyncio.create_task(taken(made.one))
        await settle()
        await (made.one.write(hold, HELLO) if by_writing else made.one.renew())
        answered.set()
        assert await claiming is hold
        await made.one.write(hold, Write(number=2))
        assert not hold.lost.is_set()


@pytest.mark.parametrize("how", ["cancelled", "cut off"])
@pytest.mark.parametrize("by_writing", [True, False])
async def test_a_claim_of_which_nobody_heard_takes_nothing_from_the_node_that_has_it(how: str, by_writing: bool) -> None:
    async with world() as (made, hold):
        made.store.late = answered = asyncio.Event()
        claiming = asyncio.create_task(taken(made.one))
        await settle()
        if how == "cancelled":
            claiming.cancel()
        else:
            made.store.down = True
            answered.set()
        await asyncio.wait([claiming])
        made.store.down = False
        await (made.one.write(hold, HELLO) if by_writing else made.one.renew())
        assert not hold.lost.is_set()
        assert await taken(made.one) is hold


async def test_after_such_a_claim_whoever_had_it_meanwhile_is_not_taken_for_us() -> None:
    async with world() as (made, hold):
        made.store.down = True
        with pytest.raises(StoreDown):
            await made.one.claim("sess_1", TOKEN, hashed("unheard"))
        made.store.down = False
        made.clock.now_s += LEASE_S + 1
        await made.other.disown(await taken(made.other))
        with pytest.raises(Fenced):
            await made.one.write(hold, HELLO)
        assert hold.lost.is_set()
        await taken(made.other)


async def test_what_a_claim_of_which_nobody_heard_has_taken_is_let_go_when_it_is_asked_for() -> None:
    async with world() as (made, hold):
        await made.one.disown(hold)
        made.store.late = asyncio.Event()
        claiming = asyncio.create_task(taken(made.other))
        await settle()
        await made.other.let_go("sess_1")  # it may still hear of it
        assert isinstance(await made.one.claim("sess_1", TOKEN, hashed("another")), OwnedBy)
        claiming.cancel()
        await asyncio.wait([claiming])
        await made.other.let_go("sess_1")
        mine = await taken(made.one)
        await made.one.let_go("sess_1")  # what is held is kept
        await made.one.write(mine, HELLO)


async def test_what_is_put_down_is_anybodys() -> None:
    async with world() as (made, hold):
        await made.one.write(hold, HELLO)
        await made.one.disown(hold)
        assert (await taken(made.other)).fence > hold.fence


async def test_an_opening_that_fails_leaves_nothing_even_if_it_was_carried_out() -> None:
    made = World()
    opened = made.store.open

    async def breaks(*wanted: object) -> object:
        await opened(*wanted)  # pyright: ignore[reportArgumentType]  passed on as it is
        raise StoreDown("the answer was lost", 0.1)

    made.store.open = breaks  # pyright: ignore[reportAttributeAccessIssue]  a line that breaks
    async with made.one.running():
        with pytest.raises(StoreDown):
            await made.one.open(RECORD, TOKEN)
        await settle()
        assert await made.store.look("sess_1") is None
