"""The agent's own voice in the microphone, told by its level."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.voice.echo import COMPARED_SLOTS, LEAST_SLOTS, SURE_SLOTS, Levels, find_echo, slot_levels
from sessions.voice.playout import SILENT_DB

SLOTS = 100


def speech(seed: int, slots: int = SLOTS, level_db: float = -20.0) -> Levels:
    """Levels that rise and fall as those of syllables do, with pauses."""
    random = np.random.default_rng(seed)
    levels = list[float]()
    while len(levels) < slots:
        loud_db = level_db - float(random.choice([0, 3, 6, 10, 16]))
        levels += [loud_db + float(wobble) for wobble in random.uniform(-2, 2, int(random.integers(2, 8)))]
        levels += [SILENT_DB] * (int(random.integers(0, 5)) if random.random() < 0.3 else 0)
    return np.array(levels[:slots])


def later(levels: Levels, slots: int, gain_db: float) -> Levels:
    return np.concatenate([np.full(slots, SILENT_DB), levels + gain_db])[: len(levels)]


def mixed(*sounds: Levels) -> Levels:
    return 10 * np.log10(sum(np.power(10, sound / 10) for sound in sounds))


def is_echo(heard: Levels, played: Levels) -> bool:
    echo = find_echo(heard, played.tolist())
    return echo is not None and echo.explains(heard, played.tolist())


ROOM = np.full(SLOTS, -70.0)


@pytest.mark.parametrize("gain_db", [-12.0, -20.0, -30.0])
@pytest.mark.parametrize("lag", [0, 3, 15, 29])
@pytest.mark.parametrize("seed", range(4))
def test_an_echo_is_found_at_any_delay(gain_db: float, lag: int, seed: int) -> None:
    played = speech(seed)
    heard = mixed(later(played, lag, gain_db), ROOM)
    echo = find_echo(heard, played.tolist())
    assert echo is not None
    assert (echo.lag, echo.gain_db) == (lag, pytest.approx(gain_db, abs=2))
    assert is_echo(heard, played)


@pytest.mark.parametrize("seed", range(20))
def test_a_voice_over_an_agent_that_is_not_fed_back_is_a_voice(seed: int) -> None:
    """Two voices may rise and fall alike for a moment, and not for long."""
    voice, agent = speech(seed + 100, 200, level_db=-26), speech(seed, 200)
    moments = range(SLOTS, 200, 2)
    explained = [is_echo(voice[:end], agent[end - SLOTS : end]) for end in moments]
    assert sum(explained) < len(moments) / 3


@pytest.mark.parametrize("after_slots", [5, 15, 25])
@pytest.mark.parametrize("seed", range(20))
def test_a_voice_that_begins_soon_after_the_agent_is_soon_a_voice(seed: int, after_slots: int) -> None:
    """Both begin, and so rise alike: for a moment it may be an echo, but it is none that would be remembered."""
    agent = np.concatenate([np.full(SLOTS, SILENT_DB), speech(seed)])
    began = SLOTS + after_slots
    voice = mixed(
        np.concatenate([np.full(began, SILENT_DB), speech(seed + 100, level_db=-34)])[: 2 * SLOTS], np.full(2 * SLOTS, -70.0)
    )
    for end in range(began + 2, began + SURE_SLOTS):
        echo = find_echo(voice[:end], agent[end - SLOTS : end].tolist())
        assert echo is None or not echo.is_sure
    moments = range(began + SURE_SLOTS, began + 2 * SURE_SLOTS)
    assert sum(is_echo(voice[:end], agent[end - SLOTS : end]) for end in moments) < len(moments) / 3


@pytest.mark.parametrize("seed", range(20))
def test_a_voice_that_begins_over_an_echo_is_heard(seed: int) -> None:
    played = speech(seed)
    voice = np.full(SLOTS, SILENT_DB)
    voice[-4:] = -26.0
    assert not is_echo(mixed(later(played, 5, -20.0), voice, ROOM), played)


def test_noise_is_no_echo_and_silence_has_none() -> None:
    random = np.random.default_rng(1)
    assert not is_echo(random.uniform(-40, -35, SLOTS), speech(1))
    assert find_echo(speech(1), [SILENT_DB] * SLOTS) is None
    assert find_echo(speech(1), ()) is None


def test_a_way_that_is_known_explains_what_comes_after_the_user_has_spoken() -> None:
    """What was heard of the user has nothing in common with what was played."""
    played = speech(3, 200)
    found = find_echo(mixed(later(played, 5, -20.0), np.full(200, -70.0))[:SLOTS], played[:SLOTS].tolist())
    assert found is not None
    heard = mixed(later(played, 5, -20.0), np.full(200, -70.0))
    heard[140:190] = speech(9, 50, level_db=-24)
    assert found.explains(heard, played[100:].tolist())
    assert not found.explains(heard[:185], played[85:185].tolist())


def test_the_room_between_two_words_of_the_agent_is_no_voice() -> None:
    played = speech(2)
    played[-12:] = SILENT_DB
    assert is_echo(mixed(later(played, 2, -30.0), np.full(SLOTS, -58.0)), played)


def test_levels_are_counted_from_the_end() -> None:
    pcm = (np.concatenate([np.full(7, 9_000), np.full(480, 32_767 // 10), np.zeros(480)])).astype("<i2").tobytes()
    assert slot_levels(pcm, 480) == pytest.approx([-20, -100], abs=0.1)
    assert len(slot_levels(b"", 480)) == 0


@given(
    st.lists(st.floats(-100, 0), max_size=SLOTS),
    st.lists(st.floats(-100, 0), max_size=SLOTS),
)
def test_any_levels_are_compared(heard: list[float], played: list[float]) -> None:
    echo = find_echo(np.asarray(heard, np.float64), played)
    assert echo is None or 0.75 <= echo.likeness <= 1.001
    if len(played) <= min(len(heard), COMPARED_SLOTS):
        assert echo is None


def test_a_microphone_that_is_there_since_the_agent_began_tells_its_echo() -> None:
    told = list[bool]()
    for seed in range(20):
        played = np.concatenate([np.full(SLOTS, SILENT_DB), speech(seed)])
        heard = mixed(later(played, 5, -20.0), np.full(2 * SLOTS, -70.0))[SLOTS:]
        told += [is_echo(heard[:slots], played[slots : SLOTS + slots]) for slots in range(15, LEAST_SLOTS)]
    assert sum(told) > 0.9 * len(told)


@pytest.mark.parametrize("slots", [3, 5, 10, 20, 39])
def test_too_little_of_the_microphone_tells_nothing(slots: int) -> None:
    """As after it was cleared, or in a fresh call: any voice resembles some stretch of what was played."""
    for seed in range(20):
        assert find_echo(speech(seed + 100, slots, level_db=-34), speech(seed).tolist()) is None
