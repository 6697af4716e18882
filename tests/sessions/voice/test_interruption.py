"""What is taken for an interruption, offline."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.voice_client import UNGUARDED
from sessions.voice.dispute import HEARD_MS
from sessions.voice.interruption import Utterance, Verdict, guards, judge
from sessions.voice.settings import VoiceSettings

SETTINGS = VoiceSettings(interruption_ms=640, echo_guard_ms=3_000)
GUARDS = guards(SETTINGS)
SETTLED = Utterance(voiced_ms=320, over=True, sounding_ms=10_000, echo_known=True)
"""A short utterance, long after the agent began to sound, whose echo is known."""


def saying(words: str, **changes: object) -> Utterance:
    return msgspec.structs.replace(SETTLED, words=words, **changes)


def test_an_utterance_under_way_is_waited_for() -> None:
    assert judge(msgspec.structs.replace(SETTLED, over=False), GUARDS) is Verdict.WAIT


def test_a_long_one_is_judged_by_its_words_so_far() -> None:
    long = msgspec.structs.replace(SETTLED, voiced_ms=640, over=False)
    assert judge(long, GUARDS) is Verdict.ASK
    assert judge(msgspec.structs.replace(long, words="I want"), GUARDS) is Verdict.CONFIRM
    assert judge(msgspec.structs.replace(long, words="mm"), GUARDS) is Verdict.WAIT


def test_length_confirms_where_words_do_not_matter() -> None:
    by_length = guards(msgspec.structs.replace(SETTINGS, backchannels=(), interruption_words=0))
    assert judge(msgspec.structs.replace(SETTLED, voiced_ms=640, over=False), by_length) is Verdict.CONFIRM


def test_a_short_one_is_judged_by_its_words() -> None:
    assert judge(SETTLED, GUARDS) is Verdict.ASK


def test_too_little_voice_is_none() -> None:
    assert judge(msgspec.structs.replace(SETTLED, voiced_ms=SETTINGS.minimum_speech_ms - 32), GUARDS) is Verdict.DENY


@pytest.mark.parametrize("words", ["Stop.", "wait", "No.", "Hold on!", "yeah, but", "Mhm, no", "Paris?", "Why?"])
def test_words_interrupt(words: str) -> None:
    assert judge(saying(words), GUARDS) is Verdict.CONFIRM


@pytest.mark.parametrize(
    "words", ["", "...", "Mhm.", "M.H.M.", "Uh-huh.", "Yeah.", "Okay, okay.", "I see...", "oh yeah right", "Um"]
)
def test_a_listener_does_not(words: str) -> None:
    assert judge(saying(words), GUARDS) is Verdict.DENY


def test_before_the_agent_sounds_a_yes_is_an_answer() -> None:
    assert judge(saying("Yes.", sounding_ms=None), GUARDS) is Verdict.CONFIRM


def test_a_yes_at_the_end_of_what_the_agent_says_answers_it() -> None:
    assert judge(saying("Yes.", goes_on=False), GUARDS) is Verdict.CONFIRM
    assert judge(saying("", goes_on=False), GUARDS) is Verdict.DENY


def test_without_tolerance_a_yeah_interrupts() -> None:
    strict = guards(msgspec.structs.replace(SETTINGS, backchannels=()))
    assert judge(saying("Yeah."), strict) is Verdict.CONFIRM
    assert judge(saying(""), strict) is Verdict.DENY


def test_neither_words_nor_tolerance_means_that_short_ones_are_none() -> None:
    by_length = guards(msgspec.structs.replace(SETTINGS, backchannels=(), interruption_words=0))
    assert judge(SETTLED, by_length) is Verdict.DENY
    assert judge(msgspec.structs.replace(SETTLED, voiced_ms=640), by_length) is Verdict.CONFIRM


def test_a_least_number_of_words_goes_for_long_ones_too() -> None:
    wordy = guards(msgspec.structs.replace(SETTINGS, interruption_words=3))
    long = msgspec.structs.replace(SETTLED, voiced_ms=640, over=False)
    assert judge(long, wordy) is Verdict.ASK
    assert judge(saying("stop it", over=False), wordy) is Verdict.WAIT
    assert judge(saying("stop it"), wordy) is Verdict.DENY
    assert judge(saying("please stop it", over=False), wordy) is Verdict.CONFIRM


SAID = "The city of Rome was founded a very long time ago. It is hot in the summer."


@pytest.mark.parametrize("settled", [False, True])
def test_the_agents_own_words_do_not_interrupt_it(settled: bool) -> None:
    """Where the client plays its echo is told by the words; where the server does, in the first three seconds too."""
    sounding_ms = 10_000 if settled else 1_000
    echo = saying("founded a very long time", sounding_ms=sounding_ms, echo_known=not settled, saying=SAID)
    assert judge(echo, GUARDS) is Verdict.DENY
    assert judge(msgspec.structs.replace(echo, words="how long ago was that"), GUARDS) is Verdict.CONFIRM


def test_the_echo_of_an_agent_that_has_just_finished_is_one() -> None:
    echo = saying("founded a very long time", sounding_ms=None, echo_known=False, saying=SAID)
    assert judge(echo, GUARDS) is Verdict.DENY


def test_who_repeats_a_settled_agent_interrupts_it() -> None:
    assert judge(saying("a very long time ago", saying=SAID), GUARDS) is Verdict.CONFIRM


@pytest.mark.parametrize(("sounding_ms", "echo_known"), [(1_000, True), (10_000, False)])
def test_what_may_be_an_echo_is_not_judged_by_length_alone(sounding_ms: int, echo_known: bool) -> None:
    utterance = msgspec.structs.replace(SETTLED, voiced_ms=640, over=False, sounding_ms=sounding_ms, echo_known=echo_known)
    by_length = msgspec.structs.replace(SETTINGS, backchannels=(), interruption_words=0)
    assert judge(utterance, guards(by_length)) is Verdict.ASK
    unguarded = guards(msgspec.structs.replace(by_length, echo_guard=False, echo_guard_ms=0))
    assert judge(utterance, unguarded) is Verdict.CONFIRM


def test_words_that_prove_nothing_are_asked_for_again_when_as_much_has_come() -> None:
    asked = msgspec.structs.replace(SETTLED, voiced_ms=900, asked_ms=640, over=False, echo_known=False)
    assert judge(asked, GUARDS) is Verdict.WAIT
    assert judge(msgspec.structs.replace(asked, voiced_ms=1_280), GUARDS) is Verdict.ASK


def test_a_sound_that_goes_on_is_asked_about_less_and_less() -> None:
    questions, asked_ms = 0, 0
    for voiced_ms in range(96, 60_000, 32):
        utterance = msgspec.structs.replace(SETTLED, voiced_ms=voiced_ms, asked_ms=asked_ms, over=False)
        if judge(utterance, GUARDS) is Verdict.ASK:
            assert voiced_ms - asked_ms < HEARD_MS
            questions, asked_ms = questions + 1, voiced_ms
    assert questions < 30


def test_what_proves_nothing_is_nothing_once_the_agent_has_finished() -> None:
    assert judge(saying("", over=False), GUARDS) is Verdict.WAIT
    assert judge(saying("", over=False, unopposed=True), GUARDS) is Verdict.DENY


def test_who_cannot_be_understood_has_the_floor() -> None:
    assert judge(msgspec.structs.replace(SETTLED, unknowable=True), GUARDS) is Verdict.CONFIRM


utterances = st.builds(
    Utterance,
    voiced_ms=st.integers(96, 60_000),
    over=st.booleans(),
    asked_ms=st.integers(0, 60_000),
    words=st.none() | st.text(max_size=40) | st.sampled_from(["yeah", "stop", "mhm", SAID]),
    unknowable=st.booleans(),
    saying=st.sampled_from(["", SAID]),
    sounding_ms=st.none() | st.integers(0, 60_000),
    echo_known=st.booleans(),
    unopposed=st.booleans(),
    goes_on=st.booleans(),
)


@given(utterances)
def test_every_guard_off_means_that_any_onset_interrupts(utterance: Utterance) -> None:
    asked = msgspec.structs.replace(utterance, words=None, asked_ms=0)
    assert judge(asked, guards(UNGUARDED)) is Verdict.CONFIRM


@given(utterances, st.integers(0, 2_000), st.integers(0, 4), st.booleans(), st.integers(0, 5_000))
def test_what_is_over_and_known_is_decided(utterance: Utterance, ms: int, words: int, echo: bool, echo_ms: int) -> None:
    known = msgspec.structs.replace(utterance, over=True, words=utterance.words or "")
    settings = VoiceSettings(interruption_ms=ms, interruption_words=words, echo_guard=echo, echo_guard_ms=echo_ms)
    assert judge(known, guards(settings)) in (Verdict.CONFIRM, Verdict.DENY)
