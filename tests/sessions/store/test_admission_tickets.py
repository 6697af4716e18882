"""Who gets a ticket, who does not and why, and how long a ticket is one; in memory and in Redis."""

import math
from pathlib import Path

import msgspec
import pytest

from fakes.admission_store import TimedAdmission, announced, seated, wish
from fakes.redis_server import running_redis
from fakes.session_stores import one_server
from fakes.whole_store import in_redis
from sessions.store.admission_limits import BILLED_KEPT_S, DUE_AT_ONCE
from sessions.store.keys import ADMISSION_KEYS
from sessions.store.records import Admitted, Ask, Evicted, News, Offered, Priority, Refusal, Refused, Used, Waiting
from sessions.store.url import parse

FULL_WITHOUT_EXPERIENCE_S = 5


async def refusal(admission: TimedAdmission, ask: Ask) -> Refused:
    decision = await admission.store.ask(ask)
    assert isinstance(decision, Refused), decision
    return decision


async def heard(admission: TimedAdmission, node: str) -> tuple[News, ...]:
    return (await admission.store.news(node, "0", 0.01))[1]


async def test_asked_again_it_is_the_same_ticket(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1))
    (first,) = await seated(admission.store, wish("s"))
    await admission.pass_time(2)
    (again,) = await seated(admission.store, wish("s"))
    assert again == msgspec.structs.replace(first, life_s=first.life_s - 2)
    census = await admission.store.census()
    assert (census.active, census.tenants) == (1, {"t": 1})
    assert census.resources["node:a:seats"] == Used(1, 1)


async def test_who_costs_nothing_is_let_in_and_counted(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 0))
    nothing = msgspec.structs.replace(wish("s", seats=0), cost={})
    await seated(admission.store, nothing)
    assert (await admission.store.census()).active == 1
    await admission.store.release("s", "a")
    assert (await admission.store.census()).active == 0


@pytest.mark.parametrize("quota", [0, 1])
async def test_a_tenant_has_no_more_than_its_quota_and_does_not_wait_for_it(admission: TimedAdmission, quota: int) -> None:
    await admission.store.announce(announced("a", 9))
    await seated(admission.store, *(wish(f"s{number}", quota=quota) for number in range(quota)))
    assert await refusal(admission, wish("more", quota=quota)) == Refused(Refusal.QUOTA, "tenant:t:sessions", 5)
    await seated(admission.store, wish("others", tenant="u", quota=1))


async def test_a_tenant_takes_its_own_lent_seat_when_it_has_no_other(admission: TimedAdmission) -> None:
    """A tab that was reloaded, and has lost its token."""
    await admission.store.announce(announced("a", 9))
    await seated(admission.store, wish("before", quota=1))
    await admission.store.keep("before", "a", 60, 0)
    await seated(admission.store, wish("after", quota=1))
    assert (await admission.store.census()).active == 1


async def test_more_than_there_is_at_all_is_too_big_and_what_is_gone_for_now_is_waited_for(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 2, reserve={"node:a:seats": 1}))
    assert await refusal(admission, wish("s", seats=2)) == Refused(Refusal.TOO_BIG, "node:a:seats", 0)
    await seated(admission.store, wish("back", seats=2, priority=Priority.RESUME))
    await admission.store.release("back", "a")
    await admission.store.announce(announced("a", 0))
    assert await admission.store.ask(wish("s")) == Waiting(1, None)


async def test_without_a_place_to_wait_it_is_told_what_is_lacking(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1))
    await seated(admission.store, wish("s"))
    for no_room in (wish("more", may_wait=False), wish("more", longest_queue=0)):
        assert await refusal(admission, no_room) == Refused(Refusal.FULL, "node:a:seats", FULL_WITHOUT_EXPERIENCE_S)
    assert (await admission.store.census()).waiting == 0


async def test_a_node_that_is_unknown_not_ready_or_draining_takes_nobody_new(admission: TimedAdmission) -> None:
    assert (await refusal(admission, wish("s"))).reason is Refusal.SETTLING
    await admission.store.announce(announced("a", 1, ready=False))
    assert (await refusal(admission, wish("s", may_wait=False))).reason is Refusal.SETTLING
    await admission.store.announce(announced("a", 1, draining=True))
    assert await refusal(admission, wish("s")) == Refused(Refusal.DRAINING, "", 1)


async def test_who_runs_on_a_node_that_drains_goes_on(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1))
    tickets = await seated(admission.store, wish("s"))
    await admission.store.announce(announced("a", 1, draining=True), tickets)
    assert await seated(admission.store, wish("s")) == tickets


async def test_a_session_moves_to_another_node_and_leaves_its_seat(admission: TimedAdmission) -> None:
    for node in ("a", "b"):
        await admission.store.announce(announced(node, 1))
    (before,) = await seated(admission.store, wish("s", "a", life_s=100))
    await admission.pass_time(5)
    (after,) = await seated(admission.store, wish("s", "b"))
    assert after.number > before.number
    assert after.life_s == 95
    await seated(admission.store, wish("next", "a"))
    await admission.store.release("s", "a")  # a late word of the node before
    assert not await admission.store.keep("s", "a", 60, 0)
    assert (await admission.store.census()).active == 2


async def test_a_session_that_moves_keeps_its_seat_until_there_is_room(admission: TimedAdmission) -> None:
    for node in ("a", "b"):
        await admission.store.announce(announced(node, 1))
    await seated(admission.store, wish("s", "a"), wish("other", "b"))
    moving = wish("s", "b", priority=Priority.RESUME)
    assert isinstance(await admission.store.ask(moving), Waiting)
    assert (await admission.store.census()).resources["node:a:seats"].used == 1
    await admission.store.release("other", "b")
    assert await heard(admission, "b") == (Offered("s"),)
    await seated(admission.store, moving)
    resources = (await admission.store.census()).resources
    assert (resources["node:a:seats"].used, resources["node:b:seats"].used) == (0, 1)


async def test_what_was_taken_in_fractions_is_given_back_to_nothing(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1))
    for number in range(3):
        await seated(admission.store, wish(f"s{number}", seats=1 / 3, load=0.1))
    assert (await admission.store.census()).resources["host:h:load"].used == 0.3
    for number in range(3):
        await admission.store.release(f"s{number}", "a")
        await admission.store.release(f"s{number}", "a")
    census = await admission.store.census()
    assert {name: used.used for name, used in census.resources.items()} == {"node:a:seats": 0, "host:h:load": 0}
    assert census.tenants == {}


async def test_a_life_ends_whatever_the_node_says(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1))
    (ticket,) = await seated(admission.store, wish("s", life_s=8))
    await admission.pass_time(7)
    await seated(admission.store, wish("s", life_s=8))
    await admission.pass_time(1)
    assert (await admission.store.renew("a", 10)).tickets == 0
    assert await heard(admission, "a") == (Evicted("s", ticket.number),)
    assert await admission.store.orphans(10) == ("s",)


async def test_orphans_come_again_until_they_are_released(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 2))
    await seated(admission.store, wish("s1", life_s=1), wish("s2", life_s=1))
    await admission.pass_time(1)
    assert await admission.store.orphans(1) == ("s1",)
    assert await admission.store.orphans(9) == ("s2",)
    assert await admission.store.orphans(9) == ()
    await admission.store.release("s1", "z")
    await admission.pass_time(60)
    assert await admission.store.orphans(9) == ("s2",)


# ── kept and lent


async def test_a_kept_ticket_is_lent_in_time_and_only_to_who_finds_no_other(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 2))
    await seated(admission.store, wish("away"))
    assert await admission.store.keep("away", "a", 60, 5)
    await seated(admission.store, wish("s"))
    assert (await refusal(admission, wish("t", may_wait=False))).reason is Refusal.FULL
    await admission.pass_time(5)
    assert (await admission.store.census()).lent == 1
    await seated(admission.store, wish("t", may_wait=False))
    (evicted,) = await heard(admission, "a")
    assert isinstance(evicted, Evicted)
    assert evicted.session_id == "away"
    assert not await admission.store.keep("away", "a", 60, 0)


async def test_the_seat_of_the_one_who_is_away_longest_is_taken_first(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 3))
    await seated(admission.store, *(wish(session) for session in ("x", "y", "z")))
    for session in ("z", "x", "y"):
        await admission.store.keep(session, "a", 60, 0)
        await admission.pass_time(1)
    await admission.store.keep("z", "a", 60, 0)  # told once more
    await seated(admission.store, wish("new"), wish("newer"))
    assert [news.session_id for news in await heard(admission, "a") if isinstance(news, Evicted)] == ["z", "x"]


async def test_who_comes_back_has_a_full_ticket_again(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1))
    tickets = await seated(admission.store, wish("s"))
    await admission.store.keep("s", "a", 60, 0)
    assert await seated(admission.store, wish("s")) == tickets
    assert (await admission.store.census()).lent == 0
    assert isinstance(await admission.store.ask(wish("new")), Waiting)
    await admission.pass_time(4.9)
    assert await seated(admission.store, wish("s", life_s=3600 - 4.9)) == [msgspec.structs.replace(tickets[0], life_s=3595.1)]


async def test_nobody_loses_a_seat_that_does_not_make_enough_room(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 4, load=4))
    await seated(admission.store, wish("away", load=1), wish("s", load=3))
    await admission.store.keep("away", "a", 60, 0)
    assert isinstance(await admission.store.ask(wish("big", load=2)), Waiting)
    assert (await admission.store.census()).lent == 1
    await admission.store.release("big", "a")
    await seated(admission.store, wish("small", load=1))
    assert (await admission.store.census()).lent == 0


async def test_nobody_makes_room_for_itself_by_its_own_seat(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 2))
    await seated(admission.store, wish("s"), wish("other"))
    await admission.store.keep("s", "a", 60, 0)
    assert isinstance(await admission.store.ask(wish("s", seats=2)), Waiting)
    assert (await admission.store.census()).lent == 1


async def test_many_who_are_away_hold_up_no_end(admission: TimedAdmission) -> None:
    many = DUE_AT_ONCE + 1
    await admission.store.announce(announced("a", many + 1))
    await seated(admission.store, wish("short", life_s=5), *(wish(f"s{number}") for number in range(many)))
    for number in range(many):
        await admission.store.keep(f"s{number}", "a", 60, 1)
    await admission.pass_time(1)
    assert [(await admission.store.census()).lent for _ in range(2)] == [DUE_AT_ONCE, many]
    await admission.pass_time(4)
    assert (await admission.store.census()).active == many


async def test_a_session_that_has_a_seat_again_is_no_orphan(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1))
    await seated(admission.store, wish("s"))
    await admission.store.keep("s", "a", 1, 0)
    await admission.pass_time(1)
    await seated(admission.store, wish("s", priority=Priority.RESUME))
    assert await admission.store.orphans(9) == ()


async def test_a_ticket_that_nobody_comes_back_for_ends(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1))
    await seated(admission.store, wish("s"))
    await admission.store.keep("s", "a", 9, 60)
    await admission.pass_time(9)
    await seated(admission.store, wish("new", may_wait=False))
    assert await admission.store.orphans(9) == ("s",)


async def test_reserved_seats_are_for_those_who_come_back(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 2, reserve={"node:a:seats": 1}))
    await seated(admission.store, wish("s"))
    assert (await refusal(admission, wish("new", may_wait=False))).reason is Refusal.FULL
    await seated(admission.store, wish("back", may_wait=False, priority=Priority.RESUME))


# ── bills


async def test_a_total_that_is_told_again_or_late_is_billed_once(admission: TimedAdmission) -> None:
    for audio_s in (1.5, 3.25, 3.25, 1.5):
        await admission.store.bill("t", "s", {"audio_s": audio_s, "tokens": 7})
    await admission.store.bill("t", "s2", {"audio_s": 0.001})
    await admission.store.bill("u", "s3", {"tokens": 1})
    assert await admission.store.bills() == {"t": {"audio_s": 3.251, "tokens": 7}, "u": {"tokens": 1}}


async def test_what_was_billed_is_remembered_longer_than_its_session_may_live(tmp_path: Path) -> None:
    async with running_redis(tmp_path) as server, in_redis(server.url) as timed:
        await timed.store.bill("t", "s", {"tokens": 7}, 500_000.0)
        wire = one_server(parse(server.url).places[0])
        left_s = await wire.ask("TTL", ADMISSION_KEYS["BILLED"] + "s")
        await wire.close()
        assert left_s == pytest.approx(500_000 + BILLED_KEPT_S, abs=60)


# ── what cannot be asked


@pytest.mark.parametrize(
    "ask",
    [
        wish("{admission}"),
        wish("s\0"),
        wish("s" * 65),
        wish(""),
        wish("s", seats=-1),
        wish("s", seats=math.nan),
        wish("s", seats=math.inf),
        wish("s", quota=-1),
        wish("s", weight=0),
        wish("s", life_s=-1),
        msgspec.structs.replace(wish("s"), cost={"seats": 1}),
    ],
)
async def test_a_wish_that_makes_no_sense_is_the_callers_mistake(admission: TimedAdmission, ask: Ask) -> None:
    await admission.store.announce(announced("a", 1))
    with pytest.raises(ValueError, match="expected"):
        await admission.store.ask(ask)
    census = await admission.store.census()
    assert (census.active, census.waiting) == (0, 0)


async def test_ids_of_tenants_and_kinds_may_be_anything(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1))
    strange = "{x}:\0\n" + "é" * 1000
    tickets = await seated(admission.store, wish("s", tenant=strange))
    assert tickets[0].tenant == strange
    assert isinstance(await admission.store.ask(wish("w", tenant=strange)), Waiting)
    await admission.store.release("s", "a")
    assert isinstance(await admission.store.ask(wish("w", tenant=strange)), Admitted)
    await admission.store.bill(strange, "w", {"tokens": 1})
    assert await admission.store.bills() == {strange: {"tokens": 1}}
