"""Turn-taking, offline."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.voice.config import SemanticVad, ServerVad
from sessions.voice.settings import VoiceSettings
from sessions.voice.turns import (
    WINDOW_MS,
    OnsetDenied,
    OnsetSuspected,
    PauseBegan,
    SpeechBegan,
    SpeechResumed,
    TurnDetector,
    TurnDropped,
    TurnEnded,
    TurnEvent,
    turn_policy,
)

T = TypeVar("T")
SETTINGS = VoiceSettings(
    prefix_padding_ms=300, pause_ms=96, hint_finished=0.7, hint_unfinished=0.3, finished_silence_ms=288, unfinished_silence_ms=928
)
SEMANTIC = turn_policy(SemanticVad(), SETTINGS)


def hear_all(detector: TurnDetector, probabilities: Iterable[float]) -> list[TurnEvent]:
    return [event for probability in probabilities for event in detector.hear(probability)]


def hear(detector: TurnDetector, probabilities: Iterable[float]) -> list[TurnEvent]:
    """Without the suspicions, which have tests of their own."""
    return [event for event in hear_all(detector, probabilities) if not isinstance(event, OnsetSuspected | OnsetDenied)]


def of(events: list[TurnEvent], kind: type[T]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


def speech(ms: int) -> list[float]:
    return [0.95] * (ms // WINDOW_MS)


def quiet(ms: int) -> list[float]:
    return [0.02] * (ms // WINDOW_MS)


def test_onset_reaches_back_by_the_prefix_padding() -> None:
    events = hear(TurnDetector(SEMANTIC), quiet(640) + speech(96))
    assert events == [SpeechBegan(640 - 300)]


def test_padding_never_reaches_before_the_stream() -> None:
    assert hear(TurnDetector(SEMANTIC, origin_ms=1_000), quiet(64) + speech(96)) == [SpeechBegan(1_000)]


@pytest.mark.parametrize("windows", [1, 2])
def test_a_click_is_no_onset(windows: int) -> None:
    assert hear(TurnDetector(SEMANTIC), (quiet(96) + [0.99] * windows) * 20) == []


def test_an_onset_is_suspected_before_it_is_certain() -> None:
    detector = TurnDetector(SEMANTIC)
    assert hear_all(detector, quiet(64)) == []
    assert hear_all(detector, [0.4]) == [OnsetSuspected()]
    assert [type(event) for event in hear_all(detector, speech(96))] == [SpeechBegan]


@pytest.mark.parametrize("windows", [1, 2])
def test_the_suspicion_of_a_click_is_taken_back(windows: int) -> None:
    events = hear_all(TurnDetector(SEMANTIC), ([0.99] * windows + quiet(96)) * 3)
    assert events == [OnsetSuspected(), OnsetDenied()] * 3


def test_a_beginning_that_flickers_stays_suspected() -> None:
    events = hear_all(TurnDetector(SEMANTIC), [0.5, 0.1, 0.1, 0.4, 0.2, 0.1, 0.9, 0.9, 0.9])
    assert [type(event) for event in events] == [OnsetSuspected, SpeechBegan]


def test_a_client_that_asks_for_less_is_suspected_of_less() -> None:
    detector = TurnDetector(turn_policy(ServerVad(threshold=0.2), SETTINGS))
    assert hear_all(detector, [0.25]) == [OnsetSuspected()]


def test_a_loud_sound_is_suspected_and_its_denial_says_so() -> None:
    detector = TurnDetector(SEMANTIC)
    assert detector.hear(0.02, loud=True) == [OnsetSuspected()]
    assert hear_all(detector, quiet(96)) == [OnsetDenied(by_loudness=True)]
    assert hear_all(detector, [0.4, *quiet(96)]) == [OnsetSuspected(), OnsetDenied(by_loudness=False)]


def test_a_turn_that_was_loud_says_nothing_about_what_follows_it() -> None:
    detector = TurnDetector(SEMANTIC)
    for probability in speech(640):
        detector.hear(probability, loud=True)
    assert hear_all(detector, quiet(2_000))[-1] == TurnEnded(0, 640, 640 + 928, 1)
    assert hear_all(detector, [0.4, *quiet(96)])[-1] == OnsetDenied(by_loudness=False)


def test_nothing_is_suspected_inside_a_turn() -> None:
    events = hear_all(TurnDetector(SEMANTIC), (speech(320) + quiet(200)) * 4)
    assert len(of(events, OnsetSuspected)) == 1


def test_no_suspicion_when_one_window_is_certain() -> None:
    policy = turn_policy(SemanticVad(), msgspec.structs.replace(SETTINGS, onset_windows=1))
    assert [type(event) for event in hear_all(TurnDetector(policy), speech(32))] == [SpeechBegan]


def test_a_dip_above_release_does_not_pause() -> None:
    events = hear(TurnDetector(SEMANTIC), speech(320) + [0.4] * 30)
    assert of(events, PauseBegan) == []


def test_gaps_inside_words_are_no_pauses() -> None:
    events = hear(TurnDetector(SEMANTIC), (speech(320) + quiet(64)) * 10)
    assert [type(event) for event in events] == [SpeechBegan]


def test_pause_then_end_by_the_longest_silence() -> None:
    events = hear(TurnDetector(SEMANTIC), speech(640) + quiet(2_000))
    assert events[1:] == [PauseBegan(1, 640 + 96), TurnEnded(0, 640, 640 + 928, 1)]


def test_a_finished_hint_ends_after_the_short_silence() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(640) + quiet(128))
    assert detector.hint(1, 0.95) == []
    assert hear(detector, quiet(160))[-1] == TurnEnded(0, 640, 640 + 288, 1)


def test_a_late_finished_hint_ends_at_once() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(640) + quiet(480))
    assert detector.hint(1, 0.95) == [TurnEnded(0, 640, 640 + 480, 1)]
    assert detector.hint(1, 0.95) == []


def test_a_second_hint_corrects_the_first() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(640) + quiet(128))
    detector.hint(1, 0.95)
    detector.hint(1, 0.05)
    assert of(hear(detector, quiet(640)), TurnEnded) == []
    assert detector.hint(1, 0.9) == [TurnEnded(0, 640, 640 + 768, 1)]


def test_resumed_speech_makes_hints_of_the_old_pause_stale() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(640) + quiet(320))
    assert hear(detector, speech(96)) == [SpeechResumed(1)]
    assert detector.hint(1, 0.99) == []
    events = hear(detector, quiet(1_000))
    assert of(events, PauseBegan) == [PauseBegan(2, 640 + 320 + 96 + 96)]
    assert detector.hint(2, 0.99) == []


def test_a_hint_about_an_earlier_pause_does_not_shorten_this_one() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(640) + quiet(320) + speech(96) + quiet(128))
    detector.hint(1, 0.99)
    assert of(hear(detector, quiet(640)), TurnEnded) == []


def test_the_end_waits_for_a_run_of_voiced_windows_to_be_confirmed() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(640) + quiet(896))
    assert hear(detector, speech(96)) == [SpeechResumed(1)]


def test_a_blip_in_a_pause_is_silence() -> None:
    events = hear(TurnDetector(SEMANTIC), speech(640) + quiet(480) + speech(64) + quiet(416))
    assert of(events, TurnEnded) == [TurnEnded(0, 640, 640 + 928, 1)]


def test_too_little_speech_is_dropped_without_recognition() -> None:
    events = hear(TurnDetector(SEMANTIC), quiet(320) + speech(128) + quiet(1_000))
    assert [type(event) for event in events] == [SpeechBegan, TurnDropped]


def test_the_next_turn_does_not_reach_into_the_last_one() -> None:
    detector = TurnDetector(turn_policy(ServerVad(silence_ms=160, prefix_padding_ms=1_000), SETTINGS))
    events = hear(detector, speech(320) + quiet(192) + speech(320))
    assert of(events, SpeechBegan) == [SpeechBegan(0), SpeechBegan(320)]


def test_server_vad_decides_by_silence_alone() -> None:
    detector = TurnDetector(turn_policy(ServerVad(silence_ms=512), SETTINGS))
    hear(detector, speech(640) + quiet(500))
    detector.hint(1, 0.99)
    assert of(hear(detector, quiet(32)), TurnEnded) == [TurnEnded(0, 640, 640 + 512, 1)]


def test_server_vad_takes_its_threshold_and_padding() -> None:
    detector = TurnDetector(turn_policy(ServerVad(threshold=0.8, prefix_padding_ms=64), SETTINGS))
    assert hear(detector, [0.7] * 10) == []
    assert hear(detector, [0.9] * 3) == [SpeechBegan(320 - 64)]


def test_a_zero_silence_window_ends_in_the_first_silent_window() -> None:
    detector = TurnDetector(turn_policy(ServerVad(silence_ms=0), SETTINGS))
    assert hear(detector, speech(320) + quiet(32))[1:] == [PauseBegan(1, 352), TurnEnded(0, 320, 352, 1)]


@pytest.mark.parametrize(("eagerness", "window_ms"), [("low", 448), ("medium", 288), ("auto", 288), ("high", 224)])
def test_eagerness_scales_the_window(eagerness: str, window_ms: int) -> None:
    detection = msgspec.convert({"type": "semantic_vad", "eagerness": eagerness}, SemanticVad)
    detector = TurnDetector(turn_policy(detection, SETTINGS))
    hear(detector, speech(640) + quiet(96))
    detector.hint(1, 1.0)
    ended = of(hear(detector, quiet(960)), TurnEnded)[0]
    assert ended.at_ms - ended.speech_end_ms == window_ms


def test_an_endless_turn_is_ended_by_force() -> None:
    events = hear(TurnDetector(SEMANTIC), speech(61_000))
    assert of(events, TurnEnded) == [TurnEnded(0, 60_000, 60_000, None)]


def test_policy_changes_in_the_middle_of_a_turn() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(640) + quiet(320))
    detector.policy = turn_policy(ServerVad(silence_ms=320), SETTINGS)
    assert of(hear(detector, quiet(32)), TurnEnded) == [TurnEnded(0, 640, 640 + 352, 1)]


def test_a_turn_that_is_held_open_ends_when_silence_may_decide_again() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(640))
    detector.held_open = True
    assert [type(event) for event in hear(detector, quiet(1_600))] == [PauseBegan]
    assert detector.hint(1, 0.95) == []
    assert detector.silence_decides() == [TurnEnded(0, 640, 640 + 1_600, 1)]
    assert detector.silence_decides() == []


def test_the_longest_turn_ends_also_when_it_is_held_open() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(640))
    detector.held_open = True
    assert len(of(hear(detector, speech(61_000)), TurnEnded)) == 1
    assert not detector.held_open


def test_what_is_forgotten_is_no_part_of_the_next_turn() -> None:
    detector = TurnDetector(SEMANTIC)
    hear(detector, speech(320) + quiet(96))
    detector.forget()
    assert hear(detector, speech(96)) == [SpeechBegan(320)]


def test_a_pause_shows_before_there_is_enough_speech_for_a_turn() -> None:
    detector = TurnDetector(SEMANTIC)
    assert not detector.pausing
    hear(detector, speech(96) + quiet(64))
    assert not detector.pausing
    detector.held_open = True
    hear(detector, quiet(32))
    assert detector.pausing
    assert detector.voiced_ms == 96
    hear(detector, speech(32))
    assert not detector.pausing


def test_what_may_be_over_does_not_depend_on_when_recognition_begins() -> None:
    detector = TurnDetector(turn_policy(SemanticVad(), msgspec.structs.replace(SETTINGS, pause_ms=32)))
    assert of(hear(detector, speech(160) + quiet(64)), PauseBegan) == [PauseBegan(1, 192)]
    assert not detector.pausing
    hear(detector, quiet(32))
    assert detector.pausing


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_surer_hint_never_asks_for_more_silence(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert SEMANTIC.silence_ms(low) >= SEMANTIC.silence_ms(high)
    assert SEMANTIC.finished_silence_ms <= SEMANTIC.silence_ms(one) <= SEMANTIC.unfinished_silence_ms


@given(st.lists(st.booleans(), max_size=300))
def test_every_suspicion_is_answered_before_the_next(voiced: list[bool]) -> None:
    told = hear_all(TurnDetector(SEMANTIC), [0.9 if each else 0.1 for each in voiced])
    answers = [event for event in told if isinstance(event, OnsetSuspected | OnsetDenied | SpeechBegan)]
    for place, event in enumerate(answers):
        assert isinstance(event, OnsetSuspected) == (place % 2 == 0)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.floats(0, 1) | st.none()), max_size=40))
def test_events_come_in_a_legal_order_for_any_input(runs: list[tuple[bool, int, float | None]]) -> None:
    detector, events = TurnDetector(SEMANTIC), list[TurnEvent]()
    for voiced, windows, hint in runs:
        for _ in range(windows):
            for event in hear(detector, [0.9 if voiced else 0.1]):
                events.append(event)
                if isinstance(event, PauseBegan) and hint is not None:
                    events += detector.hint(event.pause, hint)
    in_turn = paused = False
    for event in events:
        match event:
            case SpeechBegan():
                assert not in_turn
                in_turn = True
            case PauseBegan():
                assert in_turn
                assert not paused
                paused = True
            case SpeechResumed():
                assert paused
                paused = False
            case TurnEnded(start_ms=start, speech_end_ms=end, at_ms=at):
                assert in_turn
                assert start < end <= at
                in_turn = paused = False
            case TurnDropped():
                assert in_turn
                assert not paused
                in_turn = False
            case _:
                raise AssertionError(event)


def test_who_speaks_does_not_pause_even_where_no_silence_is_asked_for() -> None:
    detector = TurnDetector(turn_policy(ServerVad(silence_ms=0), SETTINGS))
    hear(detector, quiet(64) + speech(96))
    assert not detector.pausing
    detector.held_open = True
    hear(detector, quiet(32))
    assert detector.pausing


def test_padding_is_no_part_of_the_longest_turn() -> None:
    detector = TurnDetector(turn_policy(ServerVad(prefix_padding_ms=60_000), SETTINGS))
    events = hear(detector, quiet(70_400) + speech(3_008) + quiet(640))
    assert events[0] == SpeechBegan(10_400)
    assert [ended.speech_end_ms for ended in of(events, TurnEnded)] == [73_408]
