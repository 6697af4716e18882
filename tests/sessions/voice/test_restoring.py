"""A snapshot of a conversation, with the notes since, is the conversation as it was told."""

from collections.abc import Collection

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.voice_client import VOICES, config
from sessions.retention.snapshots import NotRestorable
from sessions.voice.conversation import Entry
from sessions.voice.events import (
    AnswerForgone,
    AudioCommitted,
    AudioDone,
    Configured,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    OutputItemAdded,
    OutputItemDone,
    PartAdded,
    PartDone,
    Recognised,
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
from sessions.voice.restoring import Due, Restored
from sessions.voice.snapshot import VoiceSnapshot, pack, unpack
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


def test_it_comes_back_as_it_was() -> None:
    assert unpack(pack(SNAPSHOT)) == SNAPSHOT


@given(st.binary(max_size=200))
def test_what_is_no_conversation_is_refused(content: bytes) -> None:
    with pytest.raises(NotRestorable):
        unpack(content)


def restored(*notes: Note, snapshot: VoiceSnapshot = EMPTY, voices: Collection[str] = VOICES) -> Restored:
    return Restored(snapshot, [decoded(note) for note in encoded(notes)], {}, voices)


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


def test_a_voice_that_is_not_here_gives_way_to_the_first_that_is_and_says_so() -> None:
    made = restored(snapshot=SNAPSHOT, voices=("amy", "heart"))
    assert made.config == config(voice="amy")
    assert made.events == [Configured(config(voice="amy"))]
    assert restored(snapshot=SNAPSHOT, voices=("amy", "joe")).events == []
    nobody_speaks = restored(snapshot=SNAPSHOT, voices=())
    assert (nobody_speaks.config, nobody_speaks.events) == (config(), [])


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
    again = UnfinishedAnswers(made.unfinished.answers)
    for event in made.events:
        again.told(event)
    assert again.answers == ()


def test_what_may_still_have_been_played_is_known_after_its_end_too() -> None:
    done = ResponseDone(msgspec.structs.replace(RESPONSE, status="completed"))
    written = msgspec.structs.replace(RESPONSE, id="resp_2", modality="text")
    assert restored(ResponseCreated(RESPONSE), done, ResponseCreated(written)).unfinished.spoken == "resp_1"
    assert restored(snapshot=msgspec.structs.replace(EMPTY, spoken="resp_0")).unfinished.spoken == "resp_0"


SAID: tuple[Note, ...] = (AudioCommitted("item_2", None, True), ItemAdded(HEARD, None))
MORE: tuple[Note, ...] = (
    AudioCommitted("item_4", "item_2", True),
    ItemAdded(msgspec.structs.replace(HEARD, id="item_4"), "item_2"),
)
UNDERSTOOD = TranscriptCompleted("item_2", 0, "And you?", 0.7)
OUT_OF_BAND = msgspec.structs.replace(RESPONSE, conversation="none")
DUE, UNKNOWABLE = Due(words_lost=False), Due(words_lost=True)


@pytest.mark.parametrize(
    ("notes", "due"),
    [
        (SAID, UNKNOWABLE),
        ((*SAID, UNDERSTOOD), DUE),
        ((*SAID, Recognised("item_2", "And you?", 0.7)), DUE),
        ((*SAID, TranscriptFailed("item_2", 0, "scripted")), UNKNOWABLE),
        ((*SAID, UNDERSTOOD, ResponseCreated(OUT_OF_BAND)), DUE),
        ((*SAID, UNDERSTOOD, *MORE), UNKNOWABLE),
        ((*SAID, UNDERSTOOD, *MORE, TranscriptCompleted("item_4", 0, "", 0.7)), DUE),
        ((*SAID, TranscriptCompleted("item_2", 0, "", 0.7)), None),
        ((*SAID, Recognised("item_2", "", 0.7)), None),
        ((*SAID, UNDERSTOOD, ResponseCreated(RESPONSE)), None),
        ((*SAID, UNDERSTOOD, AnswerForgone()), None),
        ((*SAID, UNDERSTOOD, ItemDeleted("item_2")), None),
        ((*SAID, UNDERSTOOD, AudioCommitted("item_5", "item_2")), None),
        ((AudioCommitted("item_2", None), ItemAdded(HEARD, None), UNDERSTOOD), None),
    ],
)
@pytest.mark.parametrize("rests", [False, True])
def test_what_is_to_be_answered_and_has_not_begun_is_known(notes: tuple[Note, ...], due: Due | None, rests: bool) -> None:
    """`rests`: a snapshot was taken in the middle."""
    whole = restored(*notes)
    if rests:
        half = restored(*notes[:3])
        kept = msgspec.structs.replace(EMPTY, entries=tuple(half.entries), owed=half.unfinished.owed)
        whole = restored(*notes[3:], snapshot=unpack(pack(kept)))
    assert whole.due == due
