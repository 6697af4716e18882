"""A voice through G.711 and back: pitch, level and length, and what becomes of it when packets are lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import recordings
from fakes import sounds
from realtime.media.g711 import Law
from realtime.media.g711_stream import G711Listener, G711Speaker

LAWS: list[Law] = ["pcmu", "pcma"]
PACKET_SAMPLES = 480

Sound = NDArray[np.float64]


def spoken(pcm: bytes, law: Law, piece_bytes: int = 9_601) -> list[bytes]:
    speaker = G711Speaker(law)
    pieces = (pcm[start : start + piece_bytes] for start in range(0, len(pcm), piece_bytes))
    return [packet for piece in pieces for packet in speaker.speak(piece)] + list(speaker.finish())


def heard(packets: list[bytes], law: Law, lost: frozenset[int] = frozenset()) -> Sound:
    listener = G711Listener(law)
    pieces: list[bytes] = []
    for place, packet in enumerate(packets):
        pieces += listener.lose(PACKET_SAMPLES) if place in lost else listener.hear(packet)
    return np.frombuffer(b"".join([*pieces, *listener.finish()]), "<i2").astype(np.float64)


def level_db(samples: Sound) -> float:
    return float(10 * np.log10(np.mean(samples**2)))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("hertz", [440.0, 1_000.0, 3_000.0])
def test_a_tone_keeps_pitch_level_and_length(law: Law, hertz: float) -> None:
    tone = sounds.sine(2, hertz)
    packets = spoken(tone.tobytes(), law)
    assert {len(packet) for packet in packets} == {160}
    assert len(packets) == 100
    out = heard(packets, law)
    assert len(out) == len(tone)
    assert sounds.pitch(out, sounds.RATE) == pytest.approx(hertz, abs=1)
    assert level_db(out) == pytest.approx(level_db(tone.astype(np.float64)), abs=0.5)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count", [0, 3, 479, 480, 483])
def test_the_last_packet_is_filled_with_silence(law: Law, count: int) -> None:
    packets = spoken(sounds.sine(1).tobytes()[: 2 * count], law)
    assert len(packets) == -(-count // 480)
    assert {len(packet) for packet in packets} <= {160}


@given(st.sampled_from(LAWS), st.lists(st.tuples(st.sampled_from("hlp"), st.integers(1, 1_600)), max_size=30))
def test_what_comes_out_is_as_long_as_what_came_in(law: Law, pieces: list[tuple[str, int]]) -> None:
    listener, length = G711Listener(law), 0
    for kind, size in pieces:
        match kind:
            case "h":
                given_now = list(listener.hear(bytes(size)))
            case "l":
                given_now = list(listener.lose(3 * size))
            case _:
                given_now = list(listener.pause(3 * size))
        length += sum(map(len, given_now))
    assert (length + sum(map(len, listener.finish()))) // 2 == 3 * sum(size for _, size in pieces)


@pytest.mark.parametrize("law", LAWS)
def test_a_guess_beats_silence(law: Law) -> None:
    """On all sentences together, of which a tenth is lost: what is missing and what is wrong, against what would be missing."""
    draw = np.random.default_rng(3)
    wrong, missing = list[Sound](), list[Sound]()
    for sentence in recordings.read_sentences():
        packets = spoken(sentence.pcm(), law)
        whole = heard(packets, law)
        lost = frozenset(np.flatnonzero(draw.random(len(packets)) < 0.1).tolist())
        out = heard(packets, law, lost)
        assert len(out) == len(whole)
        where = np.repeat([place in lost for place in range(len(packets))], PACKET_SAMPLES)
        wrong.append((out - whole)[where])
        missing.append(whole[where])
    assert len(wrong) == 5
    assert level_db(np.concatenate(wrong)) < level_db(np.concatenate(missing)) - 1


def test_a_long_guess_fades_into_silence() -> None:
    packets = spoken(sounds.sine(1).tobytes(), "pcmu")
    listener = G711Listener("pcmu")
    for packet in packets[:20]:
        list(listener.hear(packet))
    out = np.frombuffer(b"".join(listener.lose(9_600)), "<i2").astype(np.float64)
    assert np.abs(out[:480]).max() > 6_000
    assert np.abs(out[1_200:1_440]).max() < 2_700
    assert np.abs(out[1_700:]).max() <= 8  # the code of silence in mu-law is 0
