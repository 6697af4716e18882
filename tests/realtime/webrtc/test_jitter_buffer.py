"""The jitter buffer against a simple model: the order is kept, only holes wait, nothing that came in time is thrown away, and the
stream is as long as it was."""

import pickle
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.lossy_network import (
    SLOT_S,
    SLOT_TICKS,
    Arrival,
    Given,
    delayed,
    filled,
    lost,
    payloads,
    played,
    random_loss,
    silent,
    stream,
    without,
)
from realtime.webrtc.codec_facts import FACTS
from realtime.webrtc.jitter_buffer import MAX_HELD, MAX_STEP, JitterBuffer
from realtime.webrtc.lateness import LEAST_DELAY_S, MOST_DELAY_S
from realtime.webrtc.packets import AudioPacket, Lost, Silent
from realtime.webrtc.timeline import MOST_FILLED_AHEAD_S, STALL_S

SLOT_SAMPLES = 480
CELT_20_MS = 0xF8
PAUSE = bytes([CELT_20_MS])


def buffer() -> JitterBuffer:
    return JitterBuffer(FACTS["opus"])


def voice(place: int) -> bytes:
    """A packet of 20 ms with its number in it."""
    return bytes([CELT_20_MS]) + place.to_bytes(4)


def voices(count: int) -> list[bytes]:
    return [voice(place) for place in range(count)]


def test_what_comes_in_order_is_given_at_once() -> None:
    heard = buffer()
    for at_s, packet in stream(voices(50)):
        assert heard.add(packet, at_s) == [packet.payload]


@pytest.mark.parametrize(("sequence", "timestamp"), [(65_533, 50_000), (0, 0xFFFF_FFFF - 2 * SLOT_TICKS), (32_766, 1 << 31)])
def test_numbers_and_time_stamps_wrap(sequence: int, timestamp: int) -> None:
    sent = without(stream(voices(10), sequence, timestamp), lambda place: place == 4)
    given_then = played(buffer(), sent)
    assert payloads(given_then) == [voice(place) for place in range(10) if place != 4]
    assert lost(given_then) == [SLOT_SAMPLES]


def test_two_that_were_swapped_are_put_right() -> None:
    heard = buffer()
    sent = delayed(stream(voices(10)), lambda place: 0.025 if place == 4 else 0.0)
    given_then = played(heard, sent)
    assert payloads(given_then) == voices(10)
    assert filled(given_then) == heard.statistics().lost == 0


def test_a_hole_is_given_up_in_time_and_then_nothing_waits_any_more() -> None:
    sent = without(stream(voices(100)), lambda place: place == 50)
    given_then = played(buffer(), sent)
    late_by = {
        one.sound: one.at_s - arrival.at_s
        for one, arrival in zip([one for one in given_then if isinstance(one.sound, bytes)], sent, strict=True)
    }
    waited = [voice for voice, late_s in late_by.items() if late_s > 0]
    assert waited == [voice(51)]
    assert late_by[voice(51)] == pytest.approx(LEAST_DELAY_S)
    assert [one.sound for one in given_then[49:53]] == [voice(49), Lost(SLOT_SAMPLES), voice(51), voice(52)]


def test_what_comes_after_it_was_given_up_is_late_and_a_copy_is_double() -> None:
    heard = buffer()
    sent = delayed(stream(voices(20)), lambda place: 0.3 if place == 4 else 0.0)
    doubled = sorted(sent + [Arrival(at_s + 0.001, packet) for at_s, packet in sent])
    assert payloads(played(heard, doubled)) == [voice(place) for place in range(20) if place != 4]
    counts = heard.statistics()
    assert (counts.received, counts.lost, counts.late, counts.duplicates) == (40, 1, 1, 20)


def test_what_comes_before_the_beginning_is_late() -> None:
    heard = buffer()
    first, second = stream(voices(2))
    assert heard.add(second.packet, second.at_s) == [voice(1)]
    assert heard.add(first.packet, second.at_s + 0.001) == []
    assert heard.statistics().late == 1


def test_the_wait_follows_the_jitter_up_and_down() -> None:
    heard = buffer()
    draw = random.Random(1)
    calm, rough = 100, 200
    sent = delayed(stream(voices(400)), lambda place: draw.uniform(0, 0.08) if calm <= place < rough else 0.0)
    delay_ms = list[float]()
    for at_s, packet in sent:
        heard.add(packet, at_s)
        delay_ms.append(heard.statistics().delay_ms)
    assert delay_ms[calm - 1] == LEAST_DELAY_S * 1000
    assert max(delay_ms) == pytest.approx(MOST_DELAY_S * 1000, abs=15)
    assert delay_ms[rough + 50] == LEAST_DELAY_S * 1000  # one second later


@given(
    st.integers(0, 65_535),
    st.lists(
        st.tuples(st.sampled_from([0, 1, 1, 1, 1, 1, 2]), st.floats(0, 0.3), st.booleans()),
        min_size=1,
        max_size=80,
    ),
)
def test_any_network(sequence: int, fates: list[tuple[int, float, bool]]) -> None:
    """Each packet has its fate: how many copies come, how late, and whether it is late at all."""
    sent = stream(voices(len(fates) + 1), sequence, 0xFFFF_FFFF - 20 * SLOT_TICKS)
    arrivals = [sent[0]]
    for arrival, (copies, late_s, is_late) in zip(sent[1:], fates, strict=True):
        arrivals += [Arrival(arrival.at_s + 0.1 + late_s * is_late + 0.001 * copy, arrival.packet) for copy in range(copies)]
    arrivals.sort()
    heard = buffer()
    given_then = played(heard, arrivals)
    came = payloads(given_then)
    counts = heard.statistics()
    assert came == sorted(set(came))
    assert counts.received == len(arrivals) == len(came) + counts.late + counts.duplicates
    first_came = {arrival.packet.payload: arrival.at_s for arrival in reversed(arrivals)}
    for payload, at_s in first_came.items():
        if payload not in came:
            assert any(one.at_s <= at_s for one in given_then if isinstance(one.sound, bytes) and one.sound > payload)
    length = len(came) * SLOT_SAMPLES + filled(given_then)
    span = (int.from_bytes(came[-1][1:]) + 1) * SLOT_SAMPLES
    assert length >= span - SLOT_SAMPLES
    if max((later.at_s - sooner.at_s for sooner, later in pairwise(arrivals)), default=0) < STALL_S:
        assert length <= span + SLOT_SAMPLES
    assert all(one.at_s - first_came[one.sound] <= 0.061 for one in given_then if isinstance(one.sound, bytes))


@pytest.mark.parametrize("share", [0.01, 0.02, 0.05])
def test_random_loss_costs_only_what_was_lost(share: float) -> None:
    heard = buffer()
    count = 5_000
    sent = without(stream(voices(count)), random_loss(share, seed=3))
    given_then = played(heard, sent)
    assert payloads(given_then) == [arrival.packet.payload for arrival in sent]
    missing = count - len(sent)
    assert filled(given_then) == missing * SLOT_SAMPLES
    counts = heard.statistics()
    assert (counts.lost, counts.late) == (missing, 0)
    assert counts.concealed_s + counts.recovered_s + counts.silent_s == pytest.approx(missing * SLOT_S)


def test_a_burst_of_30_is_over_as_soon_as_a_hole_is_given_up() -> None:
    sent = without(stream(voices(200)), lambda place: 100 <= place < 130)
    given_then = played(buffer(), sent)
    again = next(one.at_s for one in given_then if one.sound == voice(130))
    assert again - sent[100].at_s <= LEAST_DELAY_S + 1e-6
    after = [one for one in given_then if isinstance(one.sound, bytes) and one.sound > voice(131)]
    assert [one.at_s for one in after] == [arrival.at_s for arrival in sent[102:]]
    assert filled(given_then) == pytest.approx(30 * SLOT_SAMPLES, abs=SLOT_SAMPLES)


@pytest.mark.parametrize("ppm", [-300, 300])
@pytest.mark.parametrize("minutes", [5, pytest.param(60, marks=[pytest.mark.full, pytest.mark.timeout(300)])])
def test_clocks_that_drift_apart_change_nothing(ppm: int, minutes: int) -> None:
    heard = buffer()
    for place in range(minutes * 60 * 50):
        packet = AudioPacket(place & 0xFFFF, place * SLOT_TICKS & 0xFFFF_FFFF, voice(place))
        at_s = place * SLOT_S * (1 + ppm / 1e6)
        assert heard.add(packet, at_s) == [packet.payload]
        due_s = heard.due_s
        assert due_s is not None
        assert due_s > at_s + SLOT_S
    counts = heard.statistics()
    assert (counts.delay_ms, counts.silent_s) == (LEAST_DELAY_S * 1000, 0)
    assert counts.jitter_ms < 2
    assert len(pickle.dumps(heard)) < 2_000


@pytest.mark.parametrize("length_s", [1.0, 10.0])
def test_an_announced_pause_is_filled_by_the_clock(length_s: float) -> None:
    """Opus falls silent after a packet of one byte, and sends one every 400 ms."""
    slots = round(length_s / SLOT_S)
    pause = [PAUSE if slot % 20 == 0 else b"" for slot in range(slots)]
    heard, sent = buffer(), stream([*voices(50), *pause, *voices(50)])
    given_then = played(heard, sent)
    assert lost(given_then) == []
    assert len(payloads(given_then)) * SLOT_SAMPLES + filled(given_then) == (100 + slots) * SLOT_SAMPLES
    lag_s = [one.at_s - (sent[0].at_s + _length_s(given_then[: place + 1])) for place, one in enumerate(given_then)]
    assert max(lag_s) < 0.13  # a turn that ends is noticed so much later at the most
    assert len({one.at_s for one in given_then if isinstance(one.sound, Silent)}) < 20 * length_s


def test_a_pause_without_end_costs_little() -> None:
    given_then = played(buffer(), stream([*voices(10), PAUSE]), until_s=3_600)
    assert len(given_then) < 2 * 3_600 + 50
    assert filled(given_then) == pytest.approx(24_000 * (3_600 - 10.2), abs=24_000)


def test_a_stall_is_not_taken_for_silence_at_once() -> None:
    sent = stream(voices(10))
    last_s = sent[-1].at_s
    given_then = played(buffer(), sent, until_s=last_s + 2)
    assert given_then[10].at_s == pytest.approx(last_s + STALL_S)
    assert silent(given_then)[0] == pytest.approx((STALL_S - 0.04) * 24_000, abs=SLOT_SAMPLES)
    assert sum(silent(given_then)) == pytest.approx(2 * 24_000, abs=0.11 * 24_000)


@pytest.mark.parametrize("stall_s", [0.2, 0.37, 1.0, 2.4])
def test_after_a_stall_all_that_was_said_is_heard(stall_s: float) -> None:
    sent = stream(voices(400))
    stalled_s = sent[100].at_s + stall_s
    arrivals = [Arrival(at_s if place < 100 else max(at_s, stalled_s), packet) for place, (at_s, packet) in enumerate(sent)]
    heard = buffer()
    given_then = played(heard, arrivals)
    assert payloads(given_then) == voices(400)
    assert filled(given_then) <= stall_s * 24_000
    assert (filled(given_then) > 0) == (stall_s > STALL_S)
    assert heard.statistics().lost == 0


def test_a_burst_that_fills_the_buffer_loses_nothing() -> None:
    """After a stall 300 packets come at once, the first of them lost."""
    sent = stream(voices(400))
    arrivals = [Arrival(max(at_s, sent[390].at_s) if place > 90 else at_s, packet) for place, (at_s, packet) in enumerate(sent)]
    given_then = played(buffer(), without(arrivals, lambda place: place == 91))
    assert payloads(given_then) == [voice(place) for place in range(400) if place != 91]


def test_a_hole_before_more_than_may_be_held_is_given_up_at_once() -> None:
    first, _, *after = stream(voices(MAX_HELD + 3))
    heard = buffer()
    heard.add(first.packet, first.at_s)
    assert [len(heard.add(packet, first.at_s)) for _, packet in after] == [0] * MAX_HELD + [1 + len(after)]


def test_a_hole_waits_for_its_time_however_many_have_come_after_it() -> None:
    sent = stream(voices(20))
    burst_s = sent[9].at_s
    arrivals = [
        Arrival(burst_s, packet) if 5 <= place < 9 else Arrival(at_s, packet) for place, (at_s, packet) in enumerate(sent)
    ]
    late = [
        Arrival(burst_s + 0.015, packet) if place == 4 else Arrival(at_s, packet) for place, (at_s, packet) in enumerate(arrivals)
    ]
    assert payloads(played(buffer(), sorted(late))) == voices(20)


@pytest.mark.parametrize(
    ("before", "between"),
    [(voice(0), [Lost(SLOT_SAMPLES), Silent(3 * SLOT_SAMPLES)]), (PAUSE, [Silent(3 * SLOT_SAMPLES), Lost(SLOT_SAMPLES)])],
)
def test_a_loss_lies_where_it_is_likely_to(before: bytes, between: list[Lost | Silent]) -> None:
    """Two packets that a stall has brought together, one lost in between and four slots of time: after an announced pause the
    lost one is that which ended it."""
    first, second = AudioPacket(1, 0, before), AudioPacket(3, 5 * SLOT_TICKS, voice(1))
    given_then = played(buffer(), [Arrival(1.0, first), Arrival(1.0, second)])
    assert [one.sound for one in given_then] == [before, *between, voice(1)]


def test_time_stamps_that_run_away_are_not_followed() -> None:
    sent = [
        Arrival(1 + place * SLOT_S, AudioPacket(place, place * (1 << 30) & 0xFFFF_FFFF, voice(place))) for place in range(500)
    ]
    given_then = played(buffer(), sent)
    assert payloads(given_then) == voices(500)
    assert filled(given_then) <= (500 * SLOT_S + 10) * 24_000


def test_memory_is_flat_however_much_is_lost() -> None:
    heard = buffer()
    played(heard, without(stream(voices(30_000)), lambda place: place % 3 > 0))
    assert len(pickle.dumps(heard)) < 5_000


@pytest.mark.parametrize("jump", [MAX_STEP + 20, -MAX_STEP - 20, 20_000])
def test_a_jump_is_a_new_stream_and_what_was_held_comes_first(jump: int) -> None:
    before = without(stream(voices(10)), lambda place: place == 8)
    after = stream(voices(30)[20:], 1_000 + jump & 0xFFFF, 7, began_s=before[-1].at_s + 0.001)
    given_then = played(buffer(), before + after)
    assert payloads(given_then) == [voice(place) for place in range(30) if place != 8 and not 10 <= place < 20]
    assert filled(given_then) == SLOT_SAMPLES


def test_another_stream_begins_anew_whatever_its_numbers() -> None:
    before, after = stream(voices(10)), stream(voices(20)[10:], 1_005, 1 << 30, began_s=10.2)
    arrivals = before + [Arrival(at_s, packet._replace(stream=1)) for at_s, packet in after]
    given_then = played(buffer(), arrivals)
    assert payloads(given_then) == voices(20)
    assert filled(given_then) == 0


def test_time_stamps_of_another_stream_do_not_count_as_late() -> None:
    heard = buffer()
    before, after = stream(voices(50), timestamp=1 << 30), stream(voices(10), timestamp=0, began_s=11.0)
    played(heard, before + [Arrival(at_s, packet._replace(stream=1)) for at_s, packet in after])
    assert heard.statistics().jitter_ms == pytest.approx(0, abs=1e-6)


def test_what_is_no_sound_leaves_no_hole() -> None:
    """Three telephone events with one time stamp, numbered along with the sound, which pauses meanwhile."""
    sent = stream(voices(8))
    events = [arrival.packet._replace(payload=b"", timestamp=sent[3].packet.timestamp) for arrival in sent[3:6]]
    arrivals = [*sent[:3], *(Arrival(at_s, event) for (at_s, _), event in zip(sent[3:6], events, strict=True)), *sent[6:]]
    given_then = played(buffer(), arrivals)
    assert [one.sound for one in given_then] == [*voices(3), Silent(3 * SLOT_SAMPLES), voice(6), voice(7)]


@pytest.mark.parametrize("frame_ms", [10, 20, 40, 60])
def test_packets_of_any_length_leave_holes_of_theirs(frame_ms: int) -> None:
    toc = {10: 0xF0, 20: 0xF8, 40: 0xF9, 60: 0xFB}[frame_ms]
    payload = bytes([toc]) + (b"\x03" if frame_ms == 60 else b"") + bytes(20)
    ticks = 48 * frame_ms
    sent = [Arrival(1 + place * frame_ms / 1000, AudioPacket(place, place * ticks, payload)) for place in range(20)]
    given_then = played(buffer(), without(sent, lambda place: place in (7, 12, 13)))
    assert lost(given_then) == [24 * frame_ms, 2 * 24 * frame_ms]
    assert silent(given_then) == []


def test_comfort_noise_explains_a_pause_of_a_telephone() -> None:
    heard = JitterBuffer(FACTS["pcmu"])
    sound = bytes(160)
    for place in range(5):
        heard.add(AudioPacket(place, 160 * place, sound), 1 + place * SLOT_S)
    noise = AudioPacket(5, 800, b"", comfort_noise=True)
    assert heard.add(noise, 1.1) == []
    assert heard.due_s == pytest.approx(1.08 + 0.02 + LEAST_DELAY_S + 0.06)
    again = [Arrival(2.0, AudioPacket(6, 8_000, sound))]
    assert filled(played(heard, again)) == 24_000 - 5 * SLOT_SAMPLES


packets = st.builds(
    AudioPacket,
    st.integers(0, 65_535) | st.integers(0, 700),
    st.integers(0, 0xFFFF_FFFF) | st.integers(0, 1_000_000),
    st.binary(max_size=6) | st.just(bytes(1_400)),
    st.integers(0, 1),
    st.booleans(),
)


@given(st.sampled_from(("opus", "pcma")), st.lists(st.tuples(st.floats(0, 0.5), packets), max_size=150))
def test_hostile_packets_are_answered_by_silence_of_bounded_length(codec: str, arrivals: list[tuple[float, AudioPacket]]) -> None:
    heard = JitterBuffer(FACTS["opus" if codec == "opus" else "pcma"])
    at_s, timed = 5.0, list[Arrival]()
    for later_s, packet in arrivals:
        at_s += later_s
        timed.append(Arrival(at_s, packet))
    given_then = played(heard, timed)
    assert len(payloads(given_then)) <= len(arrivals)
    assert filled(given_then) <= (at_s - 5.0 + MOST_FILLED_AHEAD_S + 0.2) * 24_000
    assert len(pickle.dumps(heard)) < 200_000


def _length_s(given_then: list[Given]) -> float:
    return len(payloads(given_then)) * SLOT_S + filled(given_then) / 24_000
