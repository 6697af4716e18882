from hypothesis import given
from hypothesis import strategies as st

from engines.bridges.speakable_clauses import SpeakableClauses, narrator_clauses
from engines.parameters import Speech
from engines.payloads import Payload

JOE = Speech(voice="joe")


def clauses(bridge: SpeakableClauses, *pieces: str) -> list[Payload]:
    return [clause for piece in pieces for clause in bridge.feed(Payload(text=piece))] + bridge.finish()


def test_clauses_are_speakable_and_know_what_was_written():
    first, second = clauses(SpeakableClauses(JOE), "It costs **$5**, I thi", "nk. That is 10 % less")
    assert (first.text, second.text) == ("It costs five dollars,", "I think. That is ten percent less.")
    assert first.attributes == {"clause": 0, "written": "It costs **$5**,", "written_end": 16}
    assert second.attributes == {"clause": 1, "written": " I think. That is 10 % less", "written_end": 43}


def test_what_cannot_be_spoken_at_the_end_is_an_empty_clause():
    last = clauses(SpeakableClauses(JOE), "That is all for now. ", "😀")[-1]
    assert (last.text, last.attributes["written_end"]) == ("", 22)


def test_no_text_gives_no_clause():
    assert clauses(SpeakableClauses(JOE), "", "") == []


def test_the_first_clause_is_short_and_the_narrator_goes_on_with_shorter_ones():
    text = "there are many places that one could go to on a day like this one here and there are many more on the next"
    talker, narrator = (
        [len(clause.text) for clause in clauses(bridge, text)] for bridge in (SpeakableClauses(JOE), narrator_clauses(JOE))
    )
    assert talker[0] <= 32
    assert narrator[0] <= 32
    assert narrator[1] < talker[1]


@given(st.lists(st.text(max_size=30), max_size=12))
def test_written_end_rises_to_the_end_of_the_text(pieces: list[str]):
    ends = [int(clause.attributes["written_end"]) for clause in clauses(SpeakableClauses(JOE), *pieces)]
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == len("".join(pieces))


def test_what_is_much_longer_spoken_than_written_comes_in_several_clauses():
    for text in ("7" * 390, "你" * 400, "$1" * 150):
        spoken = clauses(SpeakableClauses(JOE), text)
        assert len(spoken) > 3
        assert max(len(clause.text) for clause in spoken) <= 300
        assert [clause.attributes["clause"] for clause in spoken] == list(range(len(spoken)))
        assert "".join(str(clause.attributes["written"]) for clause in spoken) == text
