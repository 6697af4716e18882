"""What a client that plays for itself has heard."""

from itertools import takewhile
from typing import TypeAlias

from hypothesis import example, given
from hypothesis import strategies as st

from sessions.voice.playback_ledger import MAX_SOUNDS, PlaybackLedger
from sessions.voice.playout import Heard, Playing

ITEMS = ("a", "b", "c")
Step: TypeAlias = tuple[str, str, int]
"""What happens, to which item, and how many milliseconds of it."""


def ledger_with(*sounds: tuple[str, float, float]) -> PlaybackLedger:
    """Item, length and the time in seconds at which it was given."""
    ledger = PlaybackLedger()
    for item_id, audio_ms, at_s in sounds:
        ledger.send(f"resp_{item_id}", item_id)
        ledger.give(item_id, audio_ms, at_s)
    return ledger


def test_a_client_plays_in_real_time_what_it_was_given() -> None:
    ledger = ledger_with(("a", 3_000, 10.0))
    assert ledger.remaining_ms(11.25) == 1_750
    assert ledger.stop(11.25) == (Heard("resp_a", "a", 1_250, "estimated"),)


def test_what_has_played_out_is_no_longer_there_to_be_cut() -> None:
    ledger = ledger_with(("a", 3_000, 10.0))
    assert ledger.remaining_ms(13.0) == 0
    assert ledger.stop(13.0) == ()


def test_a_player_without_sound_waits_for_more() -> None:
    ledger = ledger_with(("a", 500, 10.0), ("a", 1_000, 12.0))
    assert ledger.stop(12.3) == (Heard("resp_a", "a", 800, "estimated"),)


def test_a_second_answer_begins_when_the_first_has_played_out() -> None:
    ledger = ledger_with(("a", 2_000, 0.0), ("b", 2_000, 0.5))
    assert ledger.remaining_ms(1.5) == 2_500
    assert ledger.stop(2.75) == (Heard("resp_b", "b", 750, "estimated"),)


def test_an_answer_that_waits_behind_another_was_not_heard_at_all() -> None:
    ledger = ledger_with(("a", 2_000, 0.0), ("b", 2_000, 0.5))
    assert ledger.stop(1.5) == (Heard("resp_a", "a", 1_500, "estimated"), Heard("resp_b", "b", 0, "estimated"))


def test_what_is_stopped_is_over() -> None:
    ledger = ledger_with(("a", 2_000, 0.0))
    ledger.stop(1.0)
    assert ledger.remaining_ms(1.0) == 0
    assert ledger.stop(5.0) == ()


def test_what_is_stopped_while_it_is_being_sent_was_not_heard() -> None:
    ledger = PlaybackLedger()
    ledger.send("resp_a", "a")
    assert ledger.stop(1.0) == (Heard("resp_a", "a", 0, "estimated"),)
    ledger.give("a", 2_000, 1.5)
    assert ledger.remaining_ms(1.5) == 0
    assert ledger.stop(2.0) == ()


def test_the_clients_word_counts_and_its_player_goes_on_from_there() -> None:
    ledger = ledger_with(("a", 3_000, 0.0))
    assert ledger.acknowledge("a", 400, 1.0) == 400
    assert ledger.remaining_ms(2.0) == 1_600
    assert ledger.stop(2.0) == (Heard("resp_a", "a", 400, "acknowledged"),)


def test_a_word_about_a_later_answer_says_that_the_earlier_ones_are_over() -> None:
    ledger = ledger_with(("a", 2_000, 0.0), ("b", 2_000, 0.0))
    ledger.acknowledge("b", 100, 0.5)
    assert ledger.stop(0.5) == (Heard("resp_b", "b", 100, "acknowledged"),)


def test_nobody_plays_more_than_he_was_given_or_takes_back_what_he_has_played() -> None:
    ledger = ledger_with(("a", 1_000, 0.0))
    assert ledger.acknowledge("a", 2**31, 0.1) == 1_000
    assert ledger.acknowledge("a", 10, 0.2) == 1_000
    assert ledger.acknowledge("b", 10, 0.2) is None


def test_a_truncated_answer_is_played_no_more() -> None:
    ledger = ledger_with(("a", 1_000, 0.0), ("b", 1_000, 0.0))
    ledger.truncate("a", 0.25)
    ledger.truncate("unknown", 0.25)
    assert ledger.stop(0.5) == (Heard("resp_b", "b", 250, "estimated"),)


def test_old_answers_are_forgotten() -> None:
    ledger = ledger_with(*((f"item_{number}", 10, 0.0) for number in range(MAX_SOUNDS + 1)))
    assert ledger.acknowledge("item_0", 5, 0.0) is None
    assert ledger.acknowledge("item_1", 5, 0.0) == 5


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("give", "acknowledge", "truncate", "stop", "wait")), st.sampled_from(ITEMS), st.integers(0, 3_000)
        ),
        max_size=40,
    )
)
@example([("give", "b", 1), ("give", "a", 1), ("acknowledge", "a", 1), ("give", "b", 1), ("stop", "a", 0)])
def test_in_any_order_of_events_nothing_is_heard_that_was_not_there_to_hear(steps: list[Step]) -> None:
    ledger, now_s = PlaybackLedger(), 100.0
    given_ms: dict[str, int] = {}
    said_ms: dict[str, int] = {}
    first_s: dict[str, float] = {}
    over_ms: dict[str, int] = {}
    for what, item_id, amount_ms in steps:
        match what:
            case "wait":
                now_s += amount_ms / 1000
            case "give":
                ledger.send("resp", item_id)
                ledger.give(item_id, amount_ms, now_s)
                given_ms[item_id] = given_ms.get(item_id, 0) + amount_ms
                first_s.setdefault(item_id, now_s)
            case "acknowledge":
                word = ledger.acknowledge(item_id, amount_ms, now_s)
                assert (word is None) == (item_id not in given_ms)
                if word is not None:
                    assert said_ms.get(item_id, 0) <= word <= given_ms[item_id]
                    said_ms[item_id] = word
                    if amount_ms > 0:
                        over_ms |= dict(takewhile(lambda given, until=item_id: given[0] != until, given_ms.items()))
            case "truncate":
                ledger.truncate(item_id, now_s)
            case _:
                for heard in ledger.stop(now_s):
                    assert 0 <= heard.audio_ms <= given_ms[heard.item_id]
                    assert heard.source == ("acknowledged" if heard.item_id in said_ms else "estimated")
                    if heard.source == "acknowledged":
                        assert heard.audio_ms == said_ms[heard.item_id]
                    else:
                        passed_ms = (now_s - first_s[heard.item_id]) * 1000
                        assert heard.audio_ms <= passed_ms + over_ms.get(heard.item_id, 0) + 0.001
                assert ledger.remaining_ms(now_s) == 0
        assert 0 <= ledger.remaining_ms(now_s) <= sum(given_ms.values())
    assert ledger.remaining_ms(now_s + sum(given_ms.values()) / 1000 + 0.001) == 0


def test_what_the_client_plays_and_how_much_is_left() -> None:
    ledger = ledger_with(("a", 2_000, 0.0), ("b", 2_000, 0.5))
    assert ledger.playing(0.5) == Playing("a", 500.0, 3_500.0)
    assert ledger.playing(2.5) == Playing("b", 500.0, 1_500.0)
    assert ledger.playing(4.0) is None
