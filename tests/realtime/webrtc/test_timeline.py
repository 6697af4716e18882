"""The clock goes on behind a stream whatever is sent that is no sound, so that a turn can end."""

import pytest

from fakes.lossy_network import SLOT_S, SLOT_TICKS, Arrival, Given, filled, payloads, played, silent, stream
from realtime.webrtc.codec_facts import FACTS
from realtime.webrtc.jitter_buffer import MAX_STEP, JitterBuffer
from realtime.webrtc.packets import AudioPacket
from realtime.webrtc.timeline import LONG_STEP_S

VOICE = b"\xf8voice"
SAID = stream([VOICE] * 50)
LAST_S, LAST = SAID[-1]
PAUSE_S = 3.0
LAG_S = 0.1
NOTHING_AFTER_A_JUMP = LAST._replace(sequence=LAST.sequence + MAX_STEP + 2, payload=b"")
NOTHING_OF_ANOTHER_STREAM = AudioPacket(7, 9, b"", stream=1)


def seconds(given: list[Given]) -> float:
    return filled(given) / 24_000


@pytest.mark.parametrize("nothing", [NOTHING_AFTER_A_JUMP, NOTHING_OF_ANOTHER_STREAM], ids=["jump", "stream"])
def test_a_stream_that_begins_anew_with_nothing_is_silent(nothing: AudioPacket) -> None:
    arrivals = [*SAID, Arrival(LAST_S + SLOT_S, nothing)]
    given = played(JitterBuffer(FACTS["opus"]), arrivals, until_s=LAST_S + PAUSE_S)
    assert seconds(given) == pytest.approx(PAUSE_S, abs=LONG_STEP_S + LAG_S)


@pytest.mark.parametrize("stream_number", [0, 1])
def test_what_is_said_after_that_follows_at_once(stream_number: int) -> None:
    """The clock has filled the pause; the time stamps say nothing about it."""
    began_s = LAST_S + PAUSE_S
    nothing = NOTHING_AFTER_A_JUMP if stream_number == 0 else NOTHING_OF_ANOTHER_STREAM
    again = stream([VOICE] * 10, nothing.sequence + 1, 1 << 31, began_s)
    later = [Arrival(at_s, packet._replace(stream=stream_number)) for at_s, packet in again]
    given = played(JitterBuffer(FACTS["opus"]), [*SAID, Arrival(LAST_S + SLOT_S, nothing), *later])
    assert len(payloads(given)) == 60
    assert seconds(given) == pytest.approx(PAUSE_S, abs=LONG_STEP_S + LAG_S)


@pytest.mark.parametrize("interval_s", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("comfort_noise", [True, False])
def test_however_often_it_is_said_that_there_is_nothing(interval_s: float, comfort_noise: bool) -> None:
    """Comfort noise, or a telephone's key that is held down."""
    arrivals = list(SAID)
    for place in range(1, round(PAUSE_S / interval_s)):
        sequence, timestamp = LAST.sequence + place, LAST.timestamp + SLOT_TICKS
        nothing = AudioPacket(sequence, timestamp, b"", comfort_noise=comfort_noise)
        arrivals.append(Arrival(LAST_S + place * interval_s, nothing))
    given = played(JitterBuffer(FACTS["opus"]), arrivals, until_s=LAST_S + PAUSE_S)
    assert seconds(given) == pytest.approx(PAUSE_S, abs=LONG_STEP_S + LAG_S)
    assert len(silent(given)) < 40
