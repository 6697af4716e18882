"""What is said is in the store before it goes out, many events by one write."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from fakes.clock import Clock
from fakes.cut_store import CutStore
from fakes.voice_client import settle
from sessions.retention.journal import MAX_WAITING, PROMISED, Journal, Said
from sessions.retention.ownership import Hold, Ownership
from sessions.retention.resume_tokens import hashed
from sessions.store.interface import Fenced, StoreDown
from sessions.store.records import SessionRecord
from sessions.store.session_limits import INPUT_BYTES
from sessions.usage import UsageMeter

LEASE_S = 9.0
RECORD = SessionRecord(session_id="sess_1", tenant="local", kind="voice", model="m", life_s=3_600, grace_s=60)


def said(seq: int) -> Said:
    return Said(seq, f"event {seq}".encode(), f"event {seq}".encode())


def sound(seq: int) -> Said:
    return Said(seq, b"sound", None)


class World:
    hold: Hold

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = CutStore(self.clock.now_us)
        self.ownership = Ownership(self.store, "one", LEASE_S, self.clock, self.clock.sleep)
        self.usage = UsageMeter()
        self.snapshots = 0
        self.is_full = False
        self.cuts_line = False

    async def snapshot(self) -> bytes | None:
        if self.is_full:
            return None
        self.store.down = self.cuts_line
        self.snapshots += 1
        return f"snapshot {self.snapshots}".encode()

    async def missed(self, after: int) -> list[int]:
        return [entry.seq for entry in (await self.ownership.missed(self.hold, after)).events]


@asynccontextmanager
async def world() -> AsyncGenerator[tuple[World, Journal]]:
    made = World()
    async with made.ownership.running():
        made.hold = await made.ownership.open(RECORD, hashed("token"))
        journal = Journal(made.hold, made.ownership.write, made.snapshot, made.usage)
        running = asyncio.create_task(journal.run())
        yield made, journal
        running.cancel()
        await asyncio.wait([running])


async def test_what_is_said_in_one_tick_is_one_write_and_durable_before_it_goes_out() -> None:
    async with world() as (made, journal):
        for seq in range(1, 21):
            journal.note((said(seq),))
        assert made.store.written == []
        await journal.durable()
        assert await made.missed(0) == list(range(1, 21))
        assert len(made.store.written) == 1
        await journal.durable()
        assert len(made.store.written) == 1


async def test_what_is_said_while_the_store_writes_is_the_next_write() -> None:
    async with world() as (made, journal):
        write, holding, let_on = made.store.write, asyncio.Event(), asyncio.Event()

        async def slow(*wanted: object) -> None:
            holding.set()
            await let_on.wait()
            await write(*wanted)  # pyright: ignore[reportArgumentType]  passed on as it is

        made.store.write = slow  # pyright: ignore[reportAttributeAccessIssue]  a slow line
        journal.note((said(1),))
        await holding.wait()
        for seq in range(2, 9):
            journal.note((said(seq),))
        waiting = asyncio.create_task(journal.durable())
        await settle()
        assert not waiting.done()
        let_on.set()
        await waiting
        assert [len(each.events) for each in made.store.written] == [1, 7]


async def test_sound_is_not_written_and_its_numbers_are_promised_before_it_goes_out() -> None:
    async with world() as (made, journal):
        for seq in range(1, PROMISED):
            journal.note((sound(seq),))
            await journal.durable()
        (write,) = made.store.written
        assert (write.events, write.promised) == ((), 1 + PROMISED)
        assert (await made.ownership.missed(made.hold, PROMISED)).complete


async def test_what_changes_the_session_is_kept_until_a_snapshot_takes_its_place() -> None:
    async with world() as (made, journal):
        journal.note((said(1),), [b"note 1"])
        await journal.settled()
        kept = await made.ownership.kept(made.hold)
        assert (kept.snapshot, kept.inputs) == (None, (b"note 1",))
        journal.note((said(2),), [b"note 2"])
        journal.keep_snapshot()
        await journal.settled()
        kept = await made.ownership.kept(made.hold)
        assert (kept.snapshot, kept.inputs) == (b"snapshot 1", ())


async def test_when_a_snapshot_cannot_be_kept_the_notes_are() -> None:
    async with world() as (made, journal):
        made.is_full = True
        journal.note((said(1),), [b"note 1"])
        journal.keep_snapshot()
        await journal.settled()
        kept = await made.ownership.kept(made.hold)
        assert (kept.snapshot, kept.inputs) == (None, (b"note 1",))


async def test_when_there_is_too_much_since_the_last_snapshot_another_one_is_taken() -> None:
    async with world() as (made, journal):
        journal.note((said(1),), [b"x" * (INPUT_BYTES + 1)])
        await journal.settled()
        kept = await made.ownership.kept(made.hold)
        assert (kept.snapshot, kept.inputs) == (b"snapshot 1", ())
        assert await made.missed(0) == [1]


async def test_when_the_line_is_cut_with_too_much_to_write_it_is_written_afterwards_and_once() -> None:
    async with world() as (made, journal):
        made.cuts_line = True
        journal.note((said(1),), [b"x" * (INPUT_BYTES + 1)])
        await settle()
        journal.note((said(2),), [b"a note"])
        made.cuts_line, made.store.down = False, False
        await made.clock.advance(LEASE_S / 2)
        await journal.settled()
        kept = await made.ownership.kept(made.hold)
        assert (kept.snapshot, kept.inputs) == (b"snapshot 2", ())
        assert await made.missed(0) == [1, 2]


async def test_while_the_store_is_down_it_goes_on_under_the_lease_and_is_written_afterwards() -> None:
    async with world() as (made, journal):
        made.store.down = True
        journal.note((said(1),))
        await journal.durable()
        with pytest.raises(StoreDown):
            await journal.settled()
        await made.clock.advance(LEASE_S)
        waiting = asyncio.create_task(journal.durable())
        await settle()
        assert not waiting.done()  # muted
        made.store.down = False
        await made.clock.advance(1)
        await waiting
        await journal.settled()
        assert await made.missed(0) == [1]


async def test_what_waits_for_a_store_that_is_down_is_bounded() -> None:
    async with world() as (made, journal):
        made.store.down = True
        journal.note((said(1),))
        await journal.durable()
        for seq in range(2, MAX_WAITING + 3):
            journal.note((said(seq),))
        waiting = asyncio.create_task(journal.durable())
        await settle()
        assert not waiting.done()
        made.store.down = False
        await made.clock.advance(LEASE_S / 2)
        await waiting


async def test_whoever_is_fenced_out_hears_so() -> None:
    async with world() as (made, journal):
        await made.store.end("sess_1", None)
        made.clock.now_s += LEASE_S + 1
        journal.note((said(1),))
        with pytest.raises(Fenced):
            await journal.durable()
        assert made.hold.lost.is_set()


async def test_after_the_store_has_lost_its_data_the_session_is_written_anew() -> None:
    async with world() as (made, journal):
        made.store.lose_all()
        journal.note((said(1),))
        await journal.settled()
        await settle()
        assert (await made.ownership.kept(made.hold)).snapshot == b"snapshot 1"


async def test_what_says_nothing_is_written_anew_too() -> None:
    async with world() as (made, journal):
        journal.keep_snapshot()
        await journal.settled()
        made.store.lose_all()
        await made.ownership.renew()
        await settle()
        assert (await made.ownership.kept(made.hold)).snapshot == b"snapshot 2"


async def test_usage_rides_along() -> None:
    async with world() as (made, journal):
        made.usage.add("tokens_out", 3)
        journal.note((said(1),))
        await journal.settled()
        made.usage.add("tokens_out", 4)
        assert made.usage.written == {"tokens_out": 3}
        await journal.write_usage()
        assert (await made.ownership.usage(made.hold)) == made.usage.written == {"tokens_out": 7}
