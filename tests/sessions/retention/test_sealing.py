"""What is written down of a session is read with the operator's key, where it was written, and nowhere else."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.clock import Clock
from fakes.cut_store import CutStore
from sessions.retention.ownership import Hold, Ownership
from sessions.retention.resume_tokens import hashed
from sessions.retention.sealing import Sealing, Unreadable
from sessions.store.records import Entry, Kept, Missed, SessionRecord, Write

RECORD = SessionRecord(session_id="sess_1", tenant="local", kind="voice", model="m", life_s=3_600, grace_s=60)
SAID = b'{"delta": "Paris"}'
WRITE = Write(number=1, events=(Entry(5, SAID), Entry(6, SAID)), inputs=(SAID,), results={"e1": SAID, "e2": b""})
KEYS = [None, "a secret"]


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = CutStore(self.clock.now_us)

    def node(self, key: str | None) -> Ownership:
        return Ownership(self.store, "one", 9.0, self.clock, self.clock.sleep, Sealing(key))


async def written(world: World, key: str | None) -> Hold:
    hold = await world.node(key).open(RECORD, hashed("token"))
    await world.node(key).write(hold, WRITE)
    return hold


@pytest.mark.parametrize("key", KEYS)
async def test_it_comes_back_as_it_was_and_the_store_has_none_of_it_in_plain(key: str | None) -> None:
    world = World()
    hold = await written(world, key)
    (in_store,) = world.store.written
    for content in (*(each.event for each in in_store.events), *in_store.inputs, in_store.results["e1"]):
        assert (b"Paris" in content) == (key is None)
    node = world.node(key)
    assert await node.missed(hold, 4) == Missed(WRITE.events, complete=True)
    assert (await node.kept(hold)).inputs == WRITE.inputs
    assert [await node.result("sess_1", event_id) for event_id in ("e1", "e2", "e3")] == [SAID, b"", None]


@pytest.mark.parametrize("key", [None, "another"])
async def test_who_has_not_its_key_is_told_so(key: str | None) -> None:
    world = World()
    hold = await written(world, "a secret")
    node = world.node(key)
    for reading in (node.missed(hold, 4), node.kept(hold), node.result("sess_1", "e1")):
        with pytest.raises(
            Unreadable, match=r"session sess_1.*ANTIPHON_SNAPSHOT_KEY is not set" if key is None else "another key"
        ):
            await reading


async def test_what_was_written_before_there_was_a_key_is_read() -> None:
    world = World()
    hold = await written(world, None)
    assert (await world.node("a secret").missed(hold, 4)).events == WRITE.events


def test_what_is_moved_to_another_place_or_session_opens_nowhere() -> None:
    seal, other = Sealing("a secret").of("sess_1"), Sealing("a secret").of("sess_2")
    sealed = seal.write(WRITE)
    first, second = sealed.events
    assert first.event != second.event
    for moved in (
        lambda: seal.missed(Missed((Entry(6, first.event),), complete=True)),
        lambda: other.missed(Missed(sealed.events, complete=True)),
        lambda: seal.kept(Kept(None, (first.event,))),
        lambda: seal.result("e2", sealed.results["e1"]),
    ):
        with pytest.raises(Unreadable):
            moved()


@given(st.binary(max_size=60))
def test_what_was_never_sealed_is_refused(broken: bytes) -> None:
    with pytest.raises(Unreadable):
        Sealing("a secret").of("sess_1").kept(Kept(None, (b"\0" + broken,)))


@given(st.binary(), st.integers(min_value=1))
def test_whatever_is_said_comes_back(content: bytes, seq: int) -> None:
    seal = Sealing("a secret").of("sess_1")
    write = msgspec.structs.replace(WRITE, events=(Entry(seq, content),), inputs=(content,))
    sealed = seal.write(write)
    assert seal.missed(Missed(sealed.events, complete=True)).events == write.events
    assert seal.kept(Kept(None, sealed.inputs)).inputs == write.inputs


async def test_the_key_comes_from_the_environment() -> None:
    sealed = Sealing.of_environment({"ANTIPHON_SNAPSHOT_KEY": "a secret"}).of("sess_1").write(WRITE)
    assert Sealing("a secret").of("sess_1").missed(Missed(sealed.events, complete=True)).events == WRITE.events
    assert Sealing.of_environment({"ANTIPHON_SNAPSHOT_KEY": ""}).of("sess_1").write(WRITE) == WRITE
