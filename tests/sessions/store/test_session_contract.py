"""What every session store does: who owns a session, under which fence, with which tokens, and when it ends."""

import pytest

from fakes.session_stores import Stores
from sessions.states import State
from sessions.store.interface import Fenced, SessionStore, UnknownSession
from sessions.store.records import Claimed, Entry, Fence, OwnedBy, SessionRecord, Write

LEASE_S, GRACE_S, LIFE_S = 10.0, 60.0, 3600.0
FIRST, SECOND, THIRD = b"\x01" * 32, b"\x02" * 32, b"\xff\x00" * 16


def record(session_id: str = "s1", tenant: str = "t", life_s: float = LIFE_S, grace_s: float = GRACE_S) -> SessionRecord:
    return SessionRecord(
        session_id=session_id, tenant=tenant, kind="voice", model="m", principal="key", life_s=life_s, grace_s=grace_s
    )


async def claimed(store: SessionStore, node: str, token: bytes, offer: bytes, *, above: Fence | None = None) -> Claimed:
    answer = await store.claim("s1", node, LEASE_S, token, offer, above=above)
    assert isinstance(answer, Claimed)
    return answer


# ── opening


async def test_an_opening_that_is_repeated_is_answered_the_same(stores: Stores):
    fence = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.pass_s(1)
    assert await stores.sessions.open(record(life_s=LIFE_S - 1), "a", LEASE_S, FIRST) == fence


@pytest.mark.parametrize(("node", "token"), [("b", FIRST), ("a", SECOND)])
async def test_an_id_in_use_is_not_opened_again(stores: Stores, node: str, token: bytes):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    with pytest.raises(ValueError, match="s1"):
        await stores.sessions.open(record(), node, LEASE_S, token)


async def test_an_opening_for_another_tenant_is_no_repetition(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    with pytest.raises(ValueError, match="s1"):
        await stores.sessions.open(record(tenant="other"), "a", LEASE_S, FIRST)
    with pytest.raises(Fenced):
        await stores.sessions.restore(record(tenant="other"), "a", LEASE_S, [FIRST], Fence(0, 0))
    assert len(await stores.sessions.sessions("t", "", 10)) == 1


async def test_an_opening_is_not_repeated_once_somebody_has_come_back(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await claimed(stores.sessions, "a", FIRST, SECOND)
    with pytest.raises(ValueError, match="s1"):
        await stores.sessions.open(record(), "a", LEASE_S, FIRST)


@pytest.mark.parametrize("session_id", ["", "a}b", "{a", "a\0b", "a" * 65, "ä", "a b", "x" * 1_000_000, "a\n"])
async def test_ids_that_could_leave_their_slot_are_refused(stores: Stores, session_id: str):
    with pytest.raises(ValueError, match="session id") as refused:
        await stores.sessions.open(record(session_id), "a", LEASE_S, FIRST)
    assert len(str(refused.value)) < 500
    for call in (
        stores.sessions.look(session_id),
        stores.sessions.end(session_id, None),
        stores.sessions.claim(session_id, "a", LEASE_S, FIRST, SECOND),
        stores.sessions.result(session_id, "e"),
    ):
        with pytest.raises(ValueError, match="session id"):
            await call


async def test_what_was_opened_is_seen_with_what_is_left_of_its_life(stores: Stores):
    fence = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.pass_s(4)
    listed = await stores.sessions.look("s1")
    assert listed is not None
    assert (listed.node, listed.fence, listed.usage) == ("a", fence, {})
    assert listed.record == record(life_s=LIFE_S - 4)
    owner = await stores.sessions.owner("s1")
    assert owner is not None
    assert (owner.node, owner.fence, owner.lease_s) == ("a", fence, LEASE_S - 4)


# ── coming back


async def test_a_wrong_token_and_an_unknown_session_are_not_told_apart(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    for token in (SECOND, b"", FIRST[:-1]):
        assert await stores.sessions.claim("s1", "b", LEASE_S, token, THIRD) is None
    assert await stores.sessions.claim("s2", "b", LEASE_S, FIRST, THIRD) is None


async def test_on_its_own_node_it_is_a_new_attachment(stores: Stores):
    fence = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    answer = await claimed(stores.sessions, "a", FIRST, SECOND)
    assert not answer.moved
    assert answer.fence > fence
    assert answer.record.state is State.ACTIVE
    with pytest.raises(Fenced):
        await stores.sessions.write("s1", fence, Write(state=State.DETACHED))
    await stores.sessions.write("s1", answer.fence, Write(state=State.DETACHED))


async def test_another_node_gets_it_when_the_lease_of_its_owner_is_over(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.pass_s(9)
    assert await stores.sessions.claim("s1", "b", LEASE_S, FIRST, SECOND) == OwnedBy("a", 1.0)
    await stores.pass_s(1)
    assert await stores.sessions.owner("s1") is None
    answer = await claimed(stores.sessions, "b", FIRST, SECOND)
    assert answer.moved
    assert await stores.sessions.renew_owned({"s1": Fence(7, 1)}, LEASE_S) == {"s1": False}


async def test_an_owner_that_was_paused_is_fenced_out_of_everything(stores: Stores):
    paused = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.pass_s(LEASE_S)
    fence = (await claimed(stores.sessions, "b", FIRST, SECOND)).fence
    for call in (
        stores.sessions.write("s1", paused, Write(events=(Entry(1, b"late"),))),
        stores.sessions.missed("s1", paused, 0),
        stores.sessions.kept("s1", paused),
        stores.sessions.delivered("s1", paused, FIRST),
        stores.sessions.end("s1", paused),
    ):
        with pytest.raises(Fenced, match="s1"):
            await call
    assert await stores.sessions.renew_owned({"s1": paused, "s2": paused}, LEASE_S) == {"s1": False, "s2": False}
    assert await stores.sessions.renew_owned({"s1": fence}, LEASE_S) == {"s1": True}


async def test_an_owner_whose_lease_has_lapsed_goes_on_if_nobody_took_it(stores: Stores):
    fence = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.pass_s(LEASE_S + 5)
    assert await stores.sessions.renew_owned({"s1": fence}, LEASE_S) == {"s1": True}
    assert await stores.sessions.claim("s1", "b", LEASE_S, FIRST, SECOND) == OwnedBy("a", LEASE_S)


async def test_what_its_owner_put_down_is_had_at_once(stores: Stores):
    fence = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.sessions.disown("s1", "b")
    assert isinstance(await stores.sessions.claim("s1", "b", LEASE_S, FIRST, SECOND), OwnedBy)
    await stores.sessions.disown("s1", "a")
    listed = await stores.sessions.look("s1")
    assert listed is not None
    assert (listed.record.state, listed.node) == (State.DETACHED, "")
    with pytest.raises(Fenced):
        await stores.sessions.write("s1", fence, Write(state=State.ACTIVE))
    assert await stores.sessions.renew_owned({"s1": fence}, LEASE_S) == {"s1": False}
    assert (await claimed(stores.sessions, "b", FIRST, SECOND)).moved


async def test_a_node_that_takes_up_what_it_has_put_down_has_to_restore_it(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.sessions.disown("s1", "a")
    assert (await claimed(stores.sessions, "a", FIRST, SECOND)).moved


async def test_a_claim_that_is_repeated_is_answered_the_same(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.sessions.disown("s1", "a")
    answer = await claimed(stores.sessions, "b", FIRST, SECOND)
    assert await claimed(stores.sessions, "b", FIRST, SECOND) == answer
    assert (await claimed(stores.sessions, "b", FIRST, THIRD)).fence > answer.fence


@pytest.mark.parametrize("state", [State.CLOSING, State.CLOSED, State.FAILED, State.EXPIRED])
async def test_nobody_comes_back_to_what_is_ending(stores: Stores, state: State):
    fence = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.sessions.write("s1", fence, Write(state=state))
    assert await stores.sessions.claim("s1", "a", LEASE_S, FIRST, SECOND) is None


# ── fences


async def test_fences_grow_when_the_store_s_time_stands_still_or_is_behind(stores: Stores):
    fence = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    second = (await claimed(stores.sessions, "a", FIRST, SECOND)).fence
    assert second == Fence(fence.incarnation, fence.number + 1)
    ahead = Fence(fence.incarnation + 3, fence.number + 10**9)
    assert (await claimed(stores.sessions, "a", FIRST, THIRD, above=ahead)).fence == Fence(ahead.incarnation, ahead.number + 1)
    assert (await claimed(stores.sessions, "a", FIRST, b"n", above=fence)).fence == Fence(ahead.incarnation, ahead.number + 2)


async def test_a_fence_is_the_store_s_time_in_microseconds(stores: Stores):
    fence = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.pass_s(1.5)
    assert (await claimed(stores.sessions, "a", FIRST, SECOND)).fence == Fence(fence.incarnation, fence.number + 1_500_000)


# ── tokens


async def test_offered_tokens_hold_in_any_order_until_one_of_them_is_used(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await claimed(stores.sessions, "a", FIRST, SECOND)  # FIRST is known, SECOND offered
    await claimed(stores.sessions, "a", FIRST, THIRD)
    await claimed(stores.sessions, "a", FIRST, b"four")
    await claimed(stores.sessions, "a", THIRD, b"five")
    for void in (FIRST, SECOND, b"four"):
        assert await stores.sessions.claim("s1", "a", LEASE_S, void, b"no") is None
    await claimed(stores.sessions, "a", THIRD, b"six")
    await claimed(stores.sessions, "a", b"five", b"seven")


async def test_a_token_that_was_delivered_voids_those_before(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    fence = (await claimed(stores.sessions, "a", FIRST, SECOND)).fence
    await stores.sessions.delivered("s1", fence, b"never seen")
    await stores.sessions.delivered("s1", fence, SECOND)
    await stores.sessions.delivered("s1", fence, SECOND)
    assert await stores.sessions.claim("s1", "a", LEASE_S, FIRST, THIRD) is None
    await claimed(stores.sessions, "a", SECOND, THIRD)


async def test_a_token_that_arrives_late_leaves_those_that_were_offered_since(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await claimed(stores.sessions, "a", FIRST, SECOND)
    fence = (await claimed(stores.sessions, "a", FIRST, THIRD)).fence
    await stores.sessions.delivered("s1", fence, SECOND)
    assert await stores.sessions.claim("s1", "a", LEASE_S, FIRST, b"no") is None
    await claimed(stores.sessions, "a", THIRD, b"fourth")


async def test_sixteen_offers_are_kept_and_the_newest_among_them(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    for number in range(17):
        await claimed(stores.sessions, "a", FIRST, b"offer %d" % number)
    assert await stores.sessions.claim("s1", "a", LEASE_S, b"offer 0", b"no") is None
    await claimed(stores.sessions, "a", b"offer 1", SECOND)


# ── after a loss of data


async def test_a_session_that_the_store_has_lost_is_restored_above_its_fence(stores: Stores):
    above = Fence(3, 4_000_000_000_000_000)
    fence = await stores.sessions.restore(record(), "a", LEASE_S, [FIRST], above)
    assert fence == Fence(7, above.number + 1)
    assert await stores.sessions.restore(record(life_s=LIFE_S - 1), "a", LEASE_S, [FIRST], above) == fence
    assert (await stores.sessions.missed("s1", fence, 0)).complete is False
    await stores.sessions.write("s1", fence, Write(events=(Entry(41, b"x"), Entry(42, b"y"))))
    assert not (await stores.sessions.missed("s1", fence, 39)).complete
    missed = await stores.sessions.missed("s1", fence, 41)
    assert (missed.events, missed.complete) == ((Entry(42, b"y"),), True)


async def test_with_the_session_all_its_good_tokens_are_restored(stores: Stores):
    fence = await stores.sessions.restore(record(), "a", LEASE_S, [FIRST, SECOND, THIRD], Fence(3, 20))
    again = [await claimed(stores.sessions, "a", FIRST, offer) for offer in (b"\x04" * 32, b"\x05" * 32)]
    assert fence < again[0].fence < again[1].fence
    await claimed(stores.sessions, "a", SECOND, b"\x06" * 32)  # with a newer one those before it are void
    for void in (FIRST, THIRD):
        assert await stores.sessions.claim("s1", "a", LEASE_S, void, b"\x07" * 32) is None


async def test_what_somebody_else_has_restored_is_fenced(stores: Stores):
    await stores.sessions.restore(record(), "a", LEASE_S, [FIRST], Fence(3, 20))
    with pytest.raises(Fenced):
        await stores.sessions.restore(record(), "b", LEASE_S, [FIRST], Fence(3, 10))
    with pytest.raises(Fenced):
        await stores.sessions.restore(record(), "a", LEASE_S, [SECOND], Fence(3, 10))


async def test_older_data_gives_way_to_the_newer_owner(stores: Stores):
    old = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.sessions.write("s1", old, Write(events=(Entry(1, b"old"),), snapshot=b"old", results={"e": b"old"}))
    newer = Fence(old.incarnation, old.number + 5)
    fence = await stores.sessions.restore(record(), "b", LEASE_S, [SECOND], newer)
    assert fence > newer
    assert (await stores.sessions.kept("s1", fence)).snapshot is None
    assert (await stores.sessions.missed("s1", fence, 0)).events == ()
    assert await stores.sessions.result("s1", "e") is None
    with pytest.raises(Fenced):
        await stores.sessions.write("s1", old, Write(state=State.ACTIVE))


# ── ends


async def test_a_heartbeat_does_not_extend_the_longest_life(stores: Stores):
    fence = await stores.sessions.open(record(life_s=30), "a", LEASE_S, FIRST)
    for _ in range(2):
        await stores.pass_s(9)
        assert await stores.sessions.renew_owned({"s1": fence}, LEASE_S) == {"s1": True}
    await stores.pass_s(12)
    assert await stores.sessions.renew_owned({"s1": fence}, LEASE_S) == {"s1": False}
    assert await stores.sessions.look("s1") is None
    with pytest.raises(UnknownSession, match="s1"):
        await stores.sessions.write("s1", fence, Write(state=State.ACTIVE))


async def test_a_detached_session_ends_after_its_grace_though_its_owner_lives(stores: Stores):
    fence = await stores.sessions.open(record(grace_s=20), "a", LEASE_S, FIRST)
    await stores.sessions.write("s1", fence, Write(state=State.DETACHED))
    await stores.pass_s(9)
    await stores.sessions.write("s1", fence, Write(state=State.DETACHED))  # detached since then, not anew
    await stores.pass_s(10.9)
    assert await stores.sessions.renew_owned({"s1": fence}, LEASE_S) == {"s1": True}
    await stores.pass_s(0.1)
    assert await stores.sessions.claim("s1", "a", LEASE_S, FIRST, SECOND) is None
    assert await stores.sessions.owner("s1") is None


async def test_who_comes_back_in_the_grace_has_ended_it(stores: Stores):
    fence = await stores.sessions.open(record(grace_s=20), "a", LEASE_S, FIRST)
    await stores.sessions.write("s1", fence, Write(state=State.DETACHED))
    await stores.pass_s(19)
    fence = (await claimed(stores.sessions, "a", FIRST, SECOND)).fence
    await stores.pass_s(9)
    await stores.sessions.write("s1", fence, Write(usage={"s": 1.0}))  # a write renews the lease
    await stores.pass_s(25)
    assert await stores.sessions.look("s1") is not None


async def test_a_session_whose_owner_died_ends_a_grace_after_the_lease(stores: Stores):
    await stores.sessions.open(record(grace_s=20), "a", LEASE_S, FIRST)
    await stores.pass_s(29.9)
    assert await stores.sessions.look("s1") is not None
    await stores.pass_s(0.1)
    assert await stores.sessions.look("s1") is None
    await stores.sessions.open(record(), "b", LEASE_S, SECOND)  # the id is free


async def test_an_end_deletes_once_and_says_what_there_was(stores: Stores):
    fence = await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.sessions.write("s1", fence, Write(usage={"audio_s": 2.5}, state=State.CLOSING))
    ended = await stores.sessions.end("s1", fence)
    assert ended is not None
    assert (ended.usage, ended.record.state, ended.fence) == ({"audio_s": 2.5}, State.CLOSING, fence)
    assert await stores.sessions.end("s1", fence) is None
    assert await stores.sessions.end("s1", None) is None
    with pytest.raises(UnknownSession):
        await stores.sessions.kept("s1", fence)


async def test_an_operator_ends_whatever_is_there(stores: Stores):
    await stores.sessions.open(record(), "a", LEASE_S, FIRST)
    await stores.sessions.disown("s1", "a")
    assert await stores.sessions.end("s1", None) is not None
    assert await stores.sessions.sessions(None, "", 10) == ()
