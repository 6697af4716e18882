"""What every session store keeps of a session: journal, inputs, snapshot, results; and the lists of sessions and keys."""

import pytest

from fakes.session_stores import Stores
from sessions.states import State
from sessions.store import session_limits as limits
from sessions.store.records import Claimed, Entry, Fence, SessionRecord, Write
from sessions.store.session_limits import InputsFull

LEASE_S = 10.0
TOKEN = b"\x01" * 32


def record(session_id: str = "s1", tenant: str = "t", grace_s: float = 600.0) -> SessionRecord:
    return SessionRecord(session_id=session_id, tenant=tenant, kind="voice", model="m", life_s=3600, grace_s=grace_s)


@pytest.fixture
async def fence(stores: Stores) -> Fence:
    return await stores.sessions.open(record(), "a", LEASE_S, TOKEN)


def events(*numbers: int, event: bytes = b"event") -> tuple[Entry, ...]:
    return tuple(Entry(number, event) for number in numbers)


# ── journal


async def test_what_was_missed_comes_in_order_and_once(stores: Stores, fence: Fence):
    binary = bytes(range(256))
    await stores.sessions.write("s1", fence, Write(events=(Entry(2, binary), Entry(3, b""))))
    await stores.sessions.write("s1", fence, Write(events=events(7)))
    missed = await stores.sessions.missed("s1", fence, 0)
    assert missed.events == (Entry(2, binary), Entry(3, b""), *events(7))
    assert missed.complete
    assert (await stores.sessions.missed("s1", fence, 3)).events == events(7)
    assert (await stores.sessions.missed("s1", fence, 7)).events == ()


async def test_a_write_that_is_repeated_adds_nothing(stores: Stores, fence: Fence):
    write = Write(number=1, events=events(1, 2), inputs=(b"in",))
    await stores.sessions.write("s1", fence, write)
    await stores.sessions.write("s1", fence, write)
    assert (await stores.sessions.missed("s1", fence, 0)).events == events(1, 2)
    assert (await stores.sessions.kept("s1", fence)).inputs == (b"in",)
    await stores.sessions.write("s1", fence, Write(number=2, events=events(2, 3), inputs=(b"more",)))
    assert (await stores.sessions.missed("s1", fence, 0)).events == events(1, 2, 3)
    assert (await stores.sessions.kept("s1", fence)).inputs == (b"in", b"more")


async def test_each_attachment_counts_its_writes_from_one(stores: Stores, fence: Fence):
    await stores.sessions.write("s1", fence, Write(number=5, events=events(1)))
    answer = await stores.sessions.claim("s1", "a", LEASE_S, TOKEN, b"offer")
    assert isinstance(answer, Claimed)
    await stores.sessions.write("s1", answer.fence, Write(number=1, events=events(2)))
    assert (await stores.sessions.missed("s1", answer.fence, 0)).events == events(1, 2)


@pytest.mark.parametrize("numbers", [(2, 1), (1, 1), (0,), (-1,)])
async def test_events_that_do_not_rise_are_refused(stores: Stores, fence: Fence, numbers: tuple[int, ...]):
    with pytest.raises(ValueError, match="seq"):
        await stores.sessions.write("s1", fence, Write(events=events(*numbers)))


async def test_a_client_that_knows_more_than_was_promised_is_not_believed(stores: Stores, fence: Fence):
    await stores.sessions.write("s1", fence, Write(events=events(1), promised=50))
    assert (await stores.sessions.missed("s1", fence, 50)).complete
    assert not (await stores.sessions.missed("s1", fence, 51)).complete
    await stores.sessions.disown("s1", "a")
    answer = await stores.sessions.claim("s1", "b", LEASE_S, TOKEN, b"offer")
    assert isinstance(answer, Claimed)
    assert answer.seq == 50


async def test_what_is_acknowledged_is_not_kept(stores: Stores, fence: Fence):
    await stores.sessions.write("s1", fence, Write(events=events(1, 2, 3)))
    await stores.sessions.write("s1", fence, Write(acknowledged=2))
    missed = await stores.sessions.missed("s1", fence, 2)
    assert (missed.events, missed.complete) == (events(3), True)
    missed = await stores.sessions.missed("s1", fence, 1)
    assert (missed.events, missed.complete) == (events(3), False)


async def test_the_journal_keeps_so_many_events(stores: Stores, fence: Fence):
    await stores.sessions.write("s1", fence, Write(events=events(*range(1, limits.JOURNAL_EVENTS + 3))))
    missed = await stores.sessions.missed("s1", fence, 2)
    assert missed.complete
    assert len(missed.events) == limits.JOURNAL_EVENTS
    assert not (await stores.sessions.missed("s1", fence, 1)).complete


async def test_the_journal_keeps_so_many_bytes(stores: Stores, fence: Fence):
    quarter = bytes(limits.JOURNAL_BYTES // 4)
    await stores.sessions.write("s1", fence, Write(events=events(1, 2, 3, 4, event=quarter)))
    assert (await stores.sessions.missed("s1", fence, 0)).complete
    await stores.sessions.write("s1", fence, Write(events=events(5)))
    assert not (await stores.sessions.missed("s1", fence, 0)).complete
    assert (await stores.sessions.missed("s1", fence, 1)).complete
    await stores.sessions.write("s1", fence, Write(events=events(6, event=bytes(limits.JOURNAL_BYTES + 1))))
    missed = await stores.sessions.missed("s1", fence, 5)
    assert (missed.events, missed.complete) == ((), False)


async def test_the_journal_keeps_a_window_of_time(stores: Stores, fence: Fence):
    await stores.sessions.write("s1", fence, Write(events=events(1)))
    await stores.pass_s(limits.JOURNAL_WINDOW_S)
    await stores.sessions.write("s1", fence, Write(events=events(2)))
    assert (await stores.sessions.missed("s1", fence, 0)).complete
    await stores.pass_s(0.001)
    await stores.sessions.write("s1", fence, Write(events=events(3)))
    missed = await stores.sessions.missed("s1", fence, 0)
    assert (missed.events, missed.complete) == (events(2, 3), False)


# ── inputs, snapshot, results


async def test_a_snapshot_stands_in_place_of_the_inputs_before_it(stores: Stores, fence: Fence):
    await stores.sessions.write("s1", fence, Write(inputs=(b"\x00a", b"b")))
    kept = await stores.sessions.kept("s1", fence)
    assert (kept.snapshot, kept.inputs) == (None, (b"\x00a", b"b"))
    await stores.sessions.write("s1", fence, Write(snapshot=b"", inputs=(b"c",)))
    kept = await stores.sessions.kept("s1", fence)
    assert (kept.snapshot, kept.inputs) == (b"", (b"c",))


async def test_too_many_inputs_are_refused_whole_until_a_snapshot_is_taken(stores: Stores, fence: Fence):
    half = bytes(limits.INPUT_BYTES // 2)
    await stores.sessions.write("s1", fence, Write(number=1, inputs=(half, half)))
    over = Write(number=2, inputs=(b"x",), events=events(1), state=State.ACTIVE, results={"e": b"r"})
    await stores.pass_s(1)
    with pytest.raises(InputsFull, match="snapshot"):
        await stores.sessions.write("s1", fence, over)
    owner = await stores.sessions.owner("s1")
    assert owner is not None
    assert owner.lease_s == LEASE_S - 1
    assert (await stores.sessions.missed("s1", fence, 0)).events == ()
    assert await stores.sessions.result("s1", "e") is None
    await stores.sessions.write("s1", fence, Write(number=2, snapshot=b"all of it", inputs=(b"x",)))
    assert (await stores.sessions.kept("s1", fence)).inputs == (b"x",)


async def test_what_an_event_was_answered_is_known_for_the_window(stores: Stores, fence: Fence):
    await stores.sessions.write("s1", fence, Write(results={"e1": b"first\xff"}))
    await stores.sessions.write("s1", fence, Write(results={"e1": b"second"}))
    assert await stores.sessions.result("s1", "e1") == b"first\xff"
    assert await stores.sessions.result("s1", "e2") is None
    assert await stores.sessions.result("s2", "e1") is None
    await stores.pass_s(limits.RESULT_WINDOW_S)
    assert await stores.sessions.result("s1", "e1") is None
    await stores.sessions.write("s1", fence, Write(results={"e1": b"third"}))
    assert await stores.sessions.result("s1", "e1") == b"third"


async def test_results_are_bounded_in_number_and_bytes(stores: Stores, fence: Fence):
    many = {f"e{number}": b"r" for number in range(limits.MOST_RESULTS + 1)}
    await stores.sessions.write("s1", fence, Write(results=many))
    assert await stores.sessions.result("s1", "e0") is None
    assert await stores.sessions.result("s1", "e1") == b"r"
    await stores.sessions.write("s1", fence, Write(results={"big": bytes(limits.RESULT_BYTES)}))
    assert await stores.sessions.result("s1", f"e{limits.MOST_RESULTS}") is None
    assert await stores.sessions.result("s1", "big") == bytes(limits.RESULT_BYTES)
    with pytest.raises(ValueError, match="event id"):
        await stores.sessions.write("s1", fence, Write(results={"e" * 1_000_000: b"r"}))


async def test_usage_is_the_last_that_was_told(stores: Stores, fence: Fence):
    await stores.sessions.write("s1", fence, Write(usage={"audio_s": 1.5, "tokens": 3}))
    await stores.sessions.write("s1", fence, Write(events=events(1)))
    listed = await stores.sessions.look("s1")
    assert listed is not None
    assert listed.usage == {"audio_s": 1.5, "tokens": 3}


# ── lists


async def ids(stores: Stores, tenant: str | None, after: str = "", limit: int = 1000) -> list[str]:
    return [listed.record.session_id for listed in await stores.sessions.sessions(tenant, after, limit)]


async def test_sessions_are_listed_by_tenant_sorted_and_in_pages(stores: Stores):
    for number in range(250):
        await stores.sessions.open(record(f"s{number:03}", "ab"[number % 2]), "a", LEASE_S, TOKEN)
    assert await ids(stores, None) == [f"s{number:03}" for number in range(250)]
    assert await ids(stores, "b", "s003", 3) == ["s005", "s007", "s009"]
    assert len(await ids(stores, "a", limit=1000)) == 125
    assert await ids(stores, "nobody") == []
    assert await ids(stores, None, "s248") == ["s249"]


async def test_a_tenant_sees_nothing_of_one_whose_name_begins_alike(stores: Stores):
    for number, tenant in enumerate(("t", "t1", "t{x}", "", "t t")):
        await stores.sessions.open(record(f"s{number}", tenant), "a", LEASE_S, TOKEN)
    assert [await ids(stores, tenant) for tenant in ("t", "t1", "t{x}", "", "t t")] == [["s0"], ["s1"], ["s2"], ["s3"], ["s4"]]
    with pytest.raises(ValueError, match="tenant"):
        await stores.sessions.open(record("s9", "t\0x"), "a", LEASE_S, TOKEN)


async def test_an_id_of_another_tenant_stays_with_it_until_its_session_ends(stores: Stores):
    await stores.sessions.open(record("s1", "t", grace_s=5), "a", LEASE_S, TOKEN)
    with pytest.raises(ValueError, match="in use"):
        await stores.sessions.open(record("s1", "thief"), "b", LEASE_S, TOKEN)
    assert (await ids(stores, "t"), await ids(stores, "thief")) == (["s1"], [])
    await stores.pass_s(15)
    await stores.sessions.open(record("s1", "heir"), "b", LEASE_S, TOKEN)
    assert (await ids(stores, "t"), await ids(stores, "heir"), await ids(stores, None)) == ([], ["s1"], ["s1"])


async def test_what_has_ended_is_not_listed(stores: Stores):
    for number in range(150):
        await stores.sessions.open(record(f"s{number:03}", grace_s=100 if number == 149 else 5), "a", LEASE_S, TOKEN)
    await stores.pass_s(100)
    assert await ids(stores, None, limit=1) == ["s149"]
    assert await ids(stores, "t", limit=1) == ["s149"]
    await stores.sessions.end("s149", None)
    assert await ids(stores, None) == []


# ── keys


async def test_shelves(stores: Stores):
    assert await stores.keys.shelf("api") == {}
    assert await stores.keys.put("api", "k1", b"\xff1") == b"\xff1"
    assert await stores.keys.put("api", "k1", b"2", only_new=True) == b"\xff1"
    assert await stores.keys.put("api", "k1", b"2") == b"2"
    assert await stores.keys.put("api", "new", b"", only_new=True) == b""
    assert await stores.keys.put("signing", "k1", b"3") == b"3"
    assert await stores.keys.replace("signing", "k1", b"4")
    assert await stores.keys.get("signing", "k1") == b"4"
    assert await stores.keys.get("signing", "k2") is None
    assert await stores.keys.get("none", "k1") is None
    assert await stores.keys.replace("signing", "k1", b"3")
    assert not await stores.keys.replace("signing", "k2", b"5")
    assert not await stores.keys.replace("none", "k1", b"5")
    assert await stores.keys.shelf("api") == {"k1": b"2", "new": b""}
    assert await stores.keys.remove("api", "k1")
    assert not await stores.keys.remove("api", "k1")
    assert await stores.keys.shelf("signing") == {"k1": b"3"}
