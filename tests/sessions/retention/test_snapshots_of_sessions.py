"""A snapshot is read where it may be read, and nowhere else; with the notes since, it is the conversation as it was told."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.voice_client import config
from sessions.retention.snapshots import NotRestorable, Snapshots, VoiceSnapshot
from sessions.voice.conversation import Entry
from sessions.voice.events import (
    AudioDone,
    Configured,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    OutputItemAdded,
    OutputItemDone,
    PartAdded,
    PartDone,
    Response,
    ResponseCreated,
    ResponseDone,
    TextDelta,
    TextDone,
    TranscriptCompleted,
    TranscriptFailed,
)
from sessions.voice.items import InputAudio, InputText, Item, OutputAudio
from sessions.voice.notes import Note, decoded, encoded
from sessions.voice.restoring import Restored
from sessions.voice.spoken import Spoken
from sessions.voice.unfinished import UnfinishedAnswers

SPOKEN = Spoken(15.0)
SPOKEN.add(0, 5, 700, complete=True)
HELLO = Item(id="item_1", role="user", status="completed", parts=(InputText("Hello?"),))
HEARD = Item(id="item_2", role="user", status="completed", parts=(InputAudio(None, 700),))
ANSWER = Item(id="item_3", role="assistant", status="in_progress", parts=())
WHOLE = Item(id="item_3", role="assistant", status="completed", parts=(OutputAudio("Hi there.", 900),))
SNAPSHOT = VoiceSnapshot(config=config(), entries=(Entry(HELLO), Entry(WHOLE, SPOKEN, heard_ms=300)), epoch=4, wire=b"wire")
EMPTY = VoiceSnapshot(config=config(), entries=(), epoch=0)
RESPONSE = Response(id="resp_1", status="in_progress", modality="audio", voice="joe", conversation="auto")


def files(folder: Path) -> list[tuple[bytes, int]]:
    """What they hold, and who may read them."""
    return [(file.read_bytes(), file.stat().st_mode) for file in folder.rglob("*") if file.is_file()]


@pytest.mark.parametrize("key", [None, "a secret"])
@pytest.mark.parametrize("in_directory", [False, True])
async def test_it_comes_back_as_it_was(tmp_path: Path, key: str | None, in_directory: bool) -> None:
    snapshots = Snapshots("voice", str(tmp_path / "kept") if in_directory else "store", key)
    kept = await snapshots.keep("sess_1", SNAPSHOT)
    assert await snapshots.read("sess_1", kept) == SNAPSHOT
    everything = kept + b"".join(content for content, _ in files(tmp_path))
    assert (b"Hello?" in everything) == (key is None)
    if in_directory:
        ((_, mode),) = files(tmp_path)
        assert mode & 0o077 == 0
        await snapshots.forget("sess_1")
        assert files(tmp_path) == []
        with pytest.raises(NotRestorable):
            await snapshots.read("sess_1", kept)
    await snapshots.forget("sess_1")


async def test_what_is_older_than_any_session_is_deleted(tmp_path: Path) -> None:
    snapshots = Snapshots("voice", str(tmp_path))
    for session_id in ("old", "new"):
        await snapshots.keep(session_id, SNAPSHOT)
    os.utime(tmp_path / "old.snapshot", (0, 0))
    await snapshots.sweep(3_600)
    assert len(files(tmp_path)) == 1
    assert await snapshots.read("new", await snapshots.keep("new", SNAPSHOT)) == SNAPSHOT


async def test_another_key_another_session_another_model_or_none_reads_nothing() -> None:
    kept = await Snapshots("voice", key="a secret").keep("sess_1", SNAPSHOT)
    for reader, session_id in (
        (Snapshots("voice", key="another"), "sess_1"),
        (Snapshots("voice", key="a secret"), "sess_2"),
        (Snapshots("voice"), "sess_1"),
        (Snapshots("another model", key="a secret"), "sess_1"),
    ):
        with pytest.raises(NotRestorable):
            await reader.read(session_id, kept)


@given(st.binary(max_size=200))
async def test_what_is_no_snapshot_is_refused(kept: bytes) -> None:
    with pytest.raises(NotRestorable):
        await Snapshots("voice").read("sess_1", kept)


async def test_the_key_comes_from_the_environment() -> None:
    kept = await Snapshots.of_environment("voice", "store", {"ANTIPHON_SNAPSHOT_KEY": "a secret"}).keep("sess_1", SNAPSHOT)
    assert await Snapshots("voice", key="a secret").read("sess_1", kept) == SNAPSHOT


def restored(*notes: Note, snapshot: VoiceSnapshot = EMPTY) -> Restored:
    return Restored(snapshot, [decoded(encoded(note)) for note in notes], {})


def test_notes_say_what_has_changed_since() -> None:
    made = restored(
        Configured(config(instructions="Sing.")),
        ItemAdded(HEARD, "item_1"),
        TranscriptCompleted("item_2", 0, "And you?", 0.7),
        ItemDeleted("item_3"),
        snapshot=SNAPSHOT,
    )
    assert made.config.instructions == "Sing."
    assert [entry.item.parts for entry in made.entries] == [HELLO.parts, (InputAudio("And you?", 700),)]
    assert made.events == []
    assert made.wire == b"wire"


def test_a_note_that_the_snapshot_has_already_changes_nothing() -> None:
    assert restored(ItemAdded(HELLO, None), snapshot=SNAPSHOT).entries == list(SNAPSHOT.entries)


def test_speech_whose_words_nobody_will_know_says_so() -> None:
    made = restored(ItemAdded(HEARD, None))
    assert made.entries[0].item.parts == (InputAudio("", 0),)
    assert [type(event) for event in made.events] == [TranscriptFailed]


BEGUN: tuple[Note, ...] = (
    ResponseCreated(RESPONSE),
    OutputItemAdded("resp_1", ANSWER),
    ItemAdded(ANSWER, "item_1"),
    PartAdded("resp_1", "item_3", OutputAudio("", 0)),
    TextDelta("resp_1", "item_3", "Hi ", True),
)
CLOSING: tuple[Note, ...] = (
    AudioDone("resp_1", "item_3"),
    TextDone("resp_1", "item_3", "Hi ", True),
    PartDone("resp_1", "item_3", OutputAudio("Hi ", 0)),
    ItemDone(WHOLE, "item_1"),
    OutputItemDone("resp_1", WHOLE),
    ResponseDone(RESPONSE),
)


@pytest.mark.parametrize("told", range(len(BEGUN) + len(CLOSING) + 1))
def test_an_answer_that_nobody_gives_any_more_is_ended_wherever_it_was(told: int) -> None:
    notes = [*BEGUN, *CLOSING][:told]
    made = restored(ItemAdded(HELLO, None), *notes)
    expected = [type(note).__name__ for note in CLOSING]
    if told < 4:
        expected = [name for name in expected if name not in ("AudioDone", "TextDone", "PartDone")]
    if told < 2:
        expected = ["ResponseDone"]
    already = [type(note).__name__ for note in notes]
    assert [type(event).__name__ for event in made.events] == [name for name in expected if name not in already and told]
    if 0 < told < len(BEGUN) + len(CLOSING):
        done = made.events[-1]
        assert isinstance(done, ResponseDone)
        assert done.response.status == "cancelled"
    assert all(entry.item.status != "in_progress" for entry in made.entries)


def test_what_was_told_of_an_answer_is_what_its_item_holds() -> None:
    made = restored(ItemAdded(HELLO, None), *BEGUN)
    assert [entry.item.status for entry in made.entries] == ["completed", "incomplete"]
    assert made.entries[1].item.parts == (OutputAudio("Hi ", 0),)
    again = UnfinishedAnswers(made.unfinished)
    for event in made.events:
        again.told(event)
    assert again.answers == ()
