"""The waiting room: whose turn it is, what is told, and how a place ends; in memory and in Redis."""

from collections.abc import Sequence

import msgspec

from fakes.admission_store import TimedAdmission, announced, positions, seated, wish
from sessions.store.admission_limits import DUE_AT_ONCE, GRANTS_AT_ONCE
from sessions.store.records import Ask, Offered, Priority, Refusal, Refused, Waiting


async def offered(admission: TimedAdmission, node: str = "a") -> list[str]:
    return [news.session_id for news in (await admission.store.news(node, "0", 0.01))[1] if isinstance(news, Offered)]


async def full_house(admission: TimedAdmission, seats: int = 1, load: float = 1000) -> None:
    """Of the sessions r0, r1 …"""
    await admission.store.announce(announced("a", seats, load=load))
    await seated(admission.store, *(wish(f"r{number}", tenant="r") for number in range(seats)))


async def served(admission: TimedAdmission, wishes: Sequence[Ask]) -> list[str]:
    """The order in which they get the one seat, each leaving when it has it; `r0` has it now."""
    order = ["r0"]
    while len(order) <= len(wishes):
        await admission.store.release(order[-1], "a")
        order.append((await offered(admission))[-1])
        await seated(admission.store, *(each for each in wishes if each.session_id == order[-1]))
    return order[1:]


async def test_first_come_first_served(admission: TimedAdmission) -> None:
    await full_house(admission)
    waiting = [wish(session) for session in ("z", "y", "x")]
    assert await positions(admission.store, waiting) == [1, 2, 3]
    assert await served(admission, waiting) == ["z", "y", "x"]


async def test_tenants_are_served_by_weight_and_not_by_number(admission: TimedAdmission) -> None:
    await full_house(admission)
    many = [wish(f"m{number}", tenant="many") for number in range(6)]
    heavy = [wish(f"h{number}", tenant="heavy", weight=2) for number in range(4)]
    await positions(admission.store, [*many, *heavy])
    assert await served(admission, [*many, *heavy]) == ["m0", "h0", "h1", "m1", "h2", "h3", "m2", "m3", "m4", "m5"]


async def test_a_tenant_that_was_idle_has_saved_up_nothing(admission: TimedAdmission) -> None:
    await full_house(admission)
    busy = [wish(f"b{number}", tenant="busy") for number in range(8)]
    await positions(admission.store, busy)
    assert await served(admission, busy[:4]) == ["b0", "b1", "b2", "b3"]
    idle = [wish(f"i{number}", tenant="idle") for number in range(3)]
    await positions(admission.store, idle)
    await admission.store.release("b3", "a")
    order = [(await offered(admission))[-1]]
    for _ in range(5):
        await admission.store.release(order[-1], "a")
        order.append((await offered(admission))[-1])
    assert order == ["i0", "b4", "i1", "b5", "i2", "b6"]


async def test_who_leaves_the_room_has_cost_its_tenant_nothing(admission: TimedAdmission) -> None:
    await full_house(admission)
    await positions(admission.store, [wish("other", tenant="u"), wish("other2", tenant="u")])
    for number in range(9):
        await admission.store.ask(wish(f"gone{number}"))
        await admission.store.release(f"gone{number}", "a")
    assert await positions(admission.store, [wish("stays")]) == [2]


async def test_what_is_told_never_grows(admission: TimedAdmission) -> None:
    await full_house(admission)
    waiting = [wish("first"), wish("second")]
    assert await positions(admission.store, waiting) == [1, 2]
    pressing = wish("pressing", priority=Priority.CONTROL)
    assert await positions(admission.store, [pressing, *waiting]) == [1, 1, 2]
    assert await positions(admission.store, [wish("third")]) == [4]
    await admission.store.release("first", "a")
    assert await positions(admission.store, [wish("second"), wish("third")]) == [2, 3]


async def test_resumes_come_before_all_and_batches_after(admission: TimedAdmission) -> None:
    await full_house(admission)
    waiting = [wish(f"p{priority}", priority=priority) for priority in reversed(Priority)]
    await positions(admission.store, waiting)
    assert await served(admission, waiting) == ["p0", "p1", "p2", "p3"]


async def test_a_newcomer_does_not_overtake_who_waits_for_the_same(admission: TimedAdmission) -> None:
    await full_house(admission, seats=2)
    await positions(admission.store, [wish("big", seats=2)])
    await admission.store.release("r0", "a")
    decision = await admission.store.ask(wish("small", may_wait=False))
    assert isinstance(decision, Refused)
    assert decision.reason is Refusal.FULL
    await admission.store.release("r1", "a")
    assert await offered(admission) == ["big"]


async def test_who_waits_for_a_share_of_the_host_stops_the_small_on_all_its_nodes(admission: TimedAdmission) -> None:
    await full_house(admission, seats=2, load=4)
    await admission.store.announce(announced("b", 9, load=4))
    await seated(admission.store, wish("r2", "b", load=2))
    await positions(admission.store, [wish("big", "b", load=3), wish("small", "b")])
    await admission.store.release("r0", "a")
    assert await offered(admission, "b") == []
    await admission.store.release("r2", "b")
    assert await offered(admission, "b") == ["big"]
    await admission.store.release("r1", "a")
    assert await offered(admission, "b") == ["big", "small"]


async def test_who_was_stopped_goes_on_when_the_one_ahead_gives_up(admission: TimedAdmission) -> None:
    await full_house(admission, seats=2)
    await positions(admission.store, [wish("big", seats=2), wish("small")])
    await admission.store.release("r0", "a")
    assert await offered(admission) == []
    await admission.store.release("big", "a")
    assert await offered(admission) == ["small"]


async def test_who_waits_for_its_host_keeps_its_node_for_itself(admission: TimedAdmission) -> None:
    await full_house(admission, seats=1, load=4)
    await admission.store.announce(announced("b", 1, load=4))
    await positions(admission.store, [wish("big", "b", load=4)])
    light = msgspec.structs.replace(wish("light", "b", load=0), kind="request")
    assert await positions(admission.store, [light]) == [2]
    await admission.store.release("r0", "a")
    assert await offered(admission, "b") == ["big"]


async def test_the_seat_that_a_move_leaves_is_given_away_in_the_same_step(admission: TimedAdmission) -> None:
    await full_house(admission)
    await admission.store.announce(announced("b", 1))
    await seated(admission.store, wish("s", "b"))
    await positions(admission.store, [wish("next", "a"), wish("r0", "b", tenant="r")])
    await admission.store.release("s", "b")
    assert await offered(admission, "b") == ["r0"]
    assert await offered(admission, "a") == ["next"]


async def test_a_place_is_given_back_by_its_own_node_alone(admission: TimedAdmission) -> None:
    await full_house(admission)
    await positions(admission.store, [wish("s")])
    await admission.store.release("s", "b")
    assert (await admission.store.census()).waiting == 1
    await admission.store.release("s", "a")
    assert (await admission.store.census()).waiting == 0


async def test_a_place_ends_when_it_is_not_asked_for(admission: TimedAdmission) -> None:
    await full_house(admission)
    await positions(admission.store, [wish("closed"), wish("stays")])
    for _ in range(2):
        await admission.pass_time(2.5)
        await admission.store.ask(wish("stays"))
    assert (await admission.store.census()).waiting == 1
    await admission.store.release("r0", "a")
    assert await offered(admission) == ["stays"]


async def test_an_offer_that_is_not_taken_goes_to_the_next(admission: TimedAdmission) -> None:
    await full_house(admission)
    await positions(admission.store, [wish("closed"), wish("stays")])
    await admission.store.release("r0", "a")
    assert (await admission.store.renew("a", 10)).tickets == 0
    await admission.pass_time(4)
    assert await positions(admission.store, [wish("stays")]) == [1]
    await admission.pass_time(1)
    await admission.store.renew("a", 10)
    assert await offered(admission) == ["closed", "stays"]
    assert await admission.store.orphans(9) == ()


async def test_the_life_of_an_offered_ticket_begins_when_it_is_taken(admission: TimedAdmission) -> None:
    await full_house(admission)
    await positions(admission.store, [wish("s", life_s=100)])
    await admission.store.release("r0", "a")
    await admission.pass_time(4)
    (ticket,) = await seated(admission.store, wish("s", life_s=100))
    assert ticket.life_s == 100
    assert (await admission.store.renew("a", 10)).tickets == 1


async def test_nobody_waits_longer_than_one_may(admission: TimedAdmission) -> None:
    await full_house(admission)
    await positions(admission.store, [wish("s", longest_wait_s=6)])
    await admission.pass_time(3)
    await positions(admission.store, [wish("s", longest_wait_s=6)])
    await admission.pass_time(3)
    assert await admission.store.ask(wish("s", longest_wait_s=6)) == Refused(Refusal.WAITED, "", 5)
    assert (await admission.store.census()).waiting == 0


async def test_a_full_waiting_room_refuses(admission: TimedAdmission) -> None:
    await full_house(admission)
    await positions(admission.store, [wish(f"w{number}", longest_queue=2) for number in range(2)])
    assert await admission.store.ask(wish("more", longest_queue=2)) == Refused(Refusal.FULL, "node:a:seats", 5)
    assert await positions(admission.store, [wish("w1", longest_queue=2)]) == [2]


async def test_no_tenant_keeps_the_others_out_of_a_full_waiting_room(admission: TimedAdmission) -> None:
    store = admission.store
    await full_house(admission)
    await positions(store, [wish(f"b{number}", tenant="b", longest_queue=4) for number in range(4)])
    assert await positions(store, [wish("a0", tenant="a", longest_queue=4)]) == [2]
    assert await positions(store, [wish("a1", tenant="a", longest_queue=4)]) == [4]
    for late in (wish("a2", tenant="a", longest_queue=4), wish("b3", tenant="b", longest_queue=4)):
        assert await store.ask(late) == Refused(Refusal.FULL, "node:a:seats", 5)
    assert (await store.census()).waiting == 4
    left = [wish(each, tenant=each[0], longest_queue=4) for each in ("b0", "a0", "b1", "a1")]
    assert await positions(store, left) == [1, 2, 2, 4]  # what was told does not grow


async def test_a_place_that_is_one_too_many_to_share_stays_with_who_has_it(admission: TimedAdmission) -> None:
    store = admission.store
    await full_house(admission)
    await positions(store, [wish(f"b{number}", tenant="b", longest_queue=3) for number in range(3)])
    await positions(store, [wish("a0", tenant="a", longest_queue=3)])
    for _ in range(2):  # else the two would drive each other out for good
        for late in (wish("a1", tenant="a", longest_queue=3), wish("b2", tenant="b", longest_queue=3)):
            assert await store.ask(late) == Refused(Refusal.FULL, "node:a:seats", 5)
    await positions(store, [wish(each, tenant=each[0], longest_queue=3) for each in ("b0", "a0", "b1")])


async def test_of_a_full_waiting_room_each_tenant_has_a_share_by_its_weight(admission: TimedAdmission) -> None:
    store = admission.store
    await full_house(admission)
    await positions(store, [wish(f"b{number}", tenant="b", longest_queue=6) for number in range(6)])
    decisions = [await store.ask(wish(f"a{number}", tenant="a", weight=2, longest_queue=6)) for number in range(6)]
    assert [isinstance(decision, Waiting) for decision in decisions] == [True] * 4 + [False] * 2


async def test_where_nobody_waits_nobody_gives_way(admission: TimedAdmission) -> None:
    await full_house(admission)
    await positions(admission.store, [wish(f"b{number}", tenant="b") for number in range(3)])
    refused = Refused(Refusal.FULL, "node:a:seats", 5)
    assert await admission.store.ask(wish("a0", tenant="a", longest_queue=0)) == refused
    assert await admission.store.ask(wish("a0", tenant="a", longest_queue=2, may_wait=False)) == refused
    assert (await admission.store.census()).waiting == 3


async def test_the_wait_is_estimated_from_those_who_left_and_its_error_is_kept(admission: TimedAdmission) -> None:
    await full_house(admission, seats=3)
    assert await admission.store.ask(wish("s")) == Waiting(1, None)
    await admission.store.release("s", "a")
    for number in range(2):
        await admission.pass_time(4)
        await admission.store.release(f"r{number}", "a")
        await seated(admission.store, wish(f"q{number}"))
    assert await admission.store.ask(wish("s")) == Waiting(1, 4)
    assert await admission.store.ask(wish("t")) == Waiting(2, 8)
    decision = await admission.store.ask(wish("u", may_wait=False))
    assert decision == Refused(Refusal.FULL, "node:a:seats", 12)
    await admission.store.renew("a", 10)
    await admission.pass_time(3)
    await admission.store.release("r2", "a")
    assert (await admission.store.census()).wait_error_s == 1


async def test_more_seats_than_one_call_gives_away_are_given_away_in_turn(admission: TimedAdmission) -> None:
    await full_house(admission)
    many = GRANTS_AT_ONCE * 2 + 1
    await positions(admission.store, [wish(f"w{number:02}") for number in range(many)])
    await admission.store.announce(announced("a", 100), [*await seated(admission.store, wish("r0", tenant="r"))])
    assert len(await offered(admission)) == GRANTS_AT_ONCE
    for _ in range(2):
        await admission.store.renew("a", 10)
    assert await offered(admission) == [f"w{number:02}" for number in range(many)]


async def test_more_ends_than_one_call_takes_care_of_are_taken_care_of_in_turn(admission: TimedAdmission) -> None:
    many = DUE_AT_ONCE * 2 + 1
    await admission.store.announce(announced("a", many))
    await seated(admission.store, *(wish(f"s{number}", life_s=5) for number in range(many)))
    await admission.pass_time(5)
    active = [(await admission.store.census()).active for _ in range(3)]
    assert active == [many - DUE_AT_ONCE, 1, 0]


async def test_who_waits_is_let_in_when_there_is_more_or_the_node_is_ready(admission: TimedAdmission) -> None:
    await admission.store.announce(announced("a", 1, ready=False))
    await positions(admission.store, [wish("first"), wish("second")])
    await admission.store.announce(announced("a", 1))
    assert await offered(admission) == ["first"]
    await admission.store.announce(announced("a", 2))
    assert await offered(admission) == ["first", "second"]


async def test_a_place_stays_one_when_the_wish_changes(admission: TimedAdmission) -> None:
    await full_house(admission)
    await admission.store.announce(announced("b", 0))
    await positions(admission.store, [wish("s"), wish("t")])
    assert await positions(admission.store, [wish("s", "b"), wish("t")]) == [1, 2]
    await admission.store.release("r0", "a")
    assert await offered(admission) == ["t"]
    await admission.store.announce(announced("c", 1))
    await seated(admission.store, wish("s", "c"))


async def test_a_place_survives_a_lost_lease_of_its_node_and_ends_when_it_drains(admission: TimedAdmission) -> None:
    await full_house(admission)
    await positions(admission.store, [wish("s"), wish("t")])
    await admission.store.node_gone("a")
    assert await positions(admission.store, [wish("t"), wish("s")]) == [2, 1]
    await admission.store.announce(announced("a", 1, draining=True))
    assert await admission.store.ask(wish("s")) == Refused(Refusal.DRAINING, "", 1)
    assert (await admission.store.census()).waiting == 1
