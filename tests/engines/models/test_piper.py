"""Talker, windows and decoder with the real weights."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.piper_decoder import PiperDecoder
from engines.models.piper_talker import MOST_PHONEMES, PiperTalker, drawn_noise, phoneme_parts
from engines.parameters import Speech
from engines.payloads import Array, Payload, Scalar
from engines.pipelines.voice import VOICE

pytestmark = pytest.mark.real_models

SENTENCE = "I would like to reserve a table for four people at seven thirty this evening."
JOE = Speech(voice="joe")
frame_windows = VOICE.edge("talker", "code2wav").bridge


@pytest.fixture(scope="module")
def talker(weights: Callable[[str], Path]) -> PiperTalker:
    return PiperTalker.load(weights("piper-joe"), {})


@pytest.fixture(scope="module")
def decoder(weights: Callable[[str], Path]) -> PiperDecoder:
    return PiperDecoder.load(weights("piper-joe"), {})


def clause(text: str, number: int = 0) -> Payload:
    attributes: dict[str, Scalar] = {"clause": number, "written": text, "written_end": len(text)}
    return Payload(text=text, attributes=attributes)


def rows(produced: list[Produced] | InvalidInput) -> list[Produced]:
    assert not isinstance(produced, InvalidInput), produced
    return produced


def talk(talker: PiperTalker, text: str, speech: Speech = JOE) -> Payload:
    (produced,) = rows(talker.run([(talker.open(speech), clause(text))])[0])
    return produced.payload


def frames_of(payload: Payload) -> NDArray[np.float32]:
    return cast(NDArray[np.float32], payload.arrays["frames"].numpy())


def sound(decoder: PiperDecoder, frames: Payload, speech: Speech = JOE) -> list[Produced]:
    state, bridge = decoder.open(speech), frame_windows(speech)
    windows = [(state, window) for window in bridge.feed(frames)]
    return [chunk for window in windows for chunk in rows(decoder.run([window])[0])] + decoder.flush(state)


def pcm(chunks: list[Produced]) -> NDArray[np.int16]:
    return np.concatenate([cast(NDArray[np.int16], chunk.payload.arrays["pcm"].numpy()) for chunk in chunks])


def test_a_seed_decides_the_frames(talker: PiperTalker):
    first, again, other = talk(talker, SENTENCE), talk(talker, SENTENCE), talk(talker, SENTENCE, Speech(voice="joe", seed=7))
    assert np.array_equal(frames_of(first), frames_of(again))
    assert frames_of(first).shape != frames_of(other).shape or not np.allclose(frames_of(first), frames_of(other))


def test_alone_and_batched_give_the_same_frames(talker: PiperTalker):
    texts = [f"This is sentence number {number}." for number in ("one", "two", "three", "four")]
    together = talker.run([(talker.open(JOE), clause(text)) for text in texts])
    for text, produced in zip(texts, together, strict=True):
        assert np.array_equal(frames_of(rows(produced)[0].payload), frames_of(talk(talker, text)))


def test_speed_shortens(talker: PiperTalker):
    usual, fast = (frames_of(talk(talker, SENTENCE, Speech(voice="joe", speed=speed))).shape[1] for speed in (1.0, 2.0))
    assert fast < 0.65 * usual


def test_an_unknown_voice_is_named(talker: PiperTalker):
    with pytest.raises(InvalidInput, match=r"voice: expected 'joe'.*got 'nobody'"):
        talker.open(Speech(voice="nobody"))


def test_nothing_to_speak_gives_a_clause_without_frames(talker: PiperTalker, decoder: PiperDecoder):
    silent = talk(talker, " 😀")
    assert frames_of(silent).shape == (192, 0)
    chunks = sound(decoder, silent)
    assert not len(pcm(chunks))
    assert chunks[0].payload.attributes["written_end"] == 2


def test_endless_text_is_the_request_s_fault(talker: PiperTalker):
    (refused,) = talker.run([(talker.open(JOE), clause("word " * 5_000))])
    assert isinstance(refused, InvalidInput)


def test_a_clause_of_many_phonemes_comes_in_parts_that_sound_as_one(talker: PiperTalker, decoder: PiperDecoder):
    produced = rows(talker.run([(talker.open(JOE), clause(f"{SENTENCE} " * 12))])[0])
    assert [chunk.payload.attributes["clause_final"] for chunk in produced] == [False] * (len(produced) - 1) + [True]
    lengths = [frames_of(chunk.payload).shape[1] for chunk in produced]
    assert len(lengths) > 2
    assert max(lengths) < 4_000
    assert [chunk.pts for chunk in produced] == pytest.approx(
        [sum(lengths[:part]) * 256 / 22_050 for part in range(len(lengths))]
    )
    state, bridge = decoder.open(JOE), frame_windows(JOE)
    windows = [window for chunk in produced for window in bridge.feed(chunk.payload)]
    decoded = [rows(decoder.run([(state, window)])[0])[0] for window in windows]
    assert sum(chunk.units for chunk in decoded) == sum(lengths)
    assert [chunk.payload.attributes["clause_final"] for chunk in decoded] == [False] * (len(decoded) - 1) + [True]


@given(st.text("ab ", max_size=2_000))
def test_parts_lose_nothing_but_space(sounds: str):
    parts = phoneme_parts(sounds)
    assert max(map(len, parts)) <= MOST_PHONEMES
    assert "".join("".join(parts).split()) == "".join(sounds.split())


def test_joined_windows_equal_whole_decoding(talker: PiperTalker, decoder: PiperDecoder):
    frames = talk(talker, SENTENCE)
    joined = [
        decoder.decode(frames_of(window))[256 * int(left) : len(frames_of(window)[0]) * 256 - 256 * int(right)]
        for window in frame_windows(JOE).feed(frames)
        for left, right in [(window.attributes["left"], window.attributes["right"])]
    ]
    assert np.abs(np.concatenate(joined) - decoder.decode(frames_of(frames))).max() < 1e-4


def test_chunks_as_sent_equal_one_chunk(talker: PiperTalker, decoder: PiperDecoder):
    """After trimming, resampling and rounding to 16 bits: two steps of 2⁻¹⁵ are 6e-5."""
    frames = talk(talker, SENTENCE)
    whole = Payload(arrays=frames.arrays, attributes={**frames.attributes, "left": 0, "right": 0})
    state = decoder.open(JOE)
    one_chunk = rows(decoder.run([(state, whole)])[0]) + decoder.flush(state)
    chunks = sound(decoder, frames)
    assert len(chunks) >= 4
    assert len(pcm(chunks)) == len(pcm(one_chunk))
    assert np.abs(pcm(chunks).astype(np.int32) - pcm(one_chunk)).max() <= 2


def test_requests_that_run_side_by_side_hear_nothing_of_each_other(talker: PiperTalker, decoder: PiperDecoder):
    texts = [SENTENCE, "Something else is said over here, at the same time."]
    queues = [frame_windows(JOE).feed(talk(talker, text)) for text in texts]
    states = [decoder.open(JOE) for _ in texts]
    outs: list[list[Produced]] = [[] for _ in texts]
    for step in range(max(map(len, queues))):
        for row in (row for row, queue in enumerate(queues) if step < len(queue)):
            outs[row] += rows(decoder.run([(states[row], queues[row][step])])[0])
    for text, state, out in zip(texts, states, outs, strict=True):
        assert np.array_equal(pcm(out + decoder.flush(state)), pcm(sound(decoder, talk(talker, text))))


def test_the_tally_of_frames_and_the_media_time(talker: PiperTalker, decoder: PiperDecoder):
    frames = talk(talker, SENTENCE)
    chunks = sound(decoder, frames)
    emitted = sum(chunk.units for chunk in chunks)
    decoded = sum(int(chunk.payload.attributes["decoded"]) for chunk in chunks if "decoded" in chunk.payload.attributes)
    assert emitted == frames_of(frames).shape[1]
    assert decoded / emitted <= 1.25
    lengths = [chunk.payload.arrays["pcm"].shape[0] for chunk in chunks]
    assert [chunk.pts for chunk in chunks] == pytest.approx(np.cumsum([0, *lengths[:-1]]) / 24_000)
    assert chunks[0].payload.attributes["rate"] == 24_000


def test_the_first_chunk_is_voiced_from_its_start(talker: PiperTalker, decoder: PiperDecoder):
    first = pcm(sound(decoder, talk(talker, "The capital of France is Paris."))[:1])
    assert np.flatnonzero(np.abs(first) > 130)[0] <= 0.025 * 24_000


def test_frames_of_a_wrong_shape_are_refused(decoder: PiperDecoder):
    state = decoder.open(JOE)
    for bad in (Payload(), Payload(arrays={"frames": Array.of(np.zeros((3, 4), np.float32))})):
        assert isinstance(decoder.run([(state, bad)])[0], InvalidInput)


def test_noise_depends_on_its_counter_alone():
    drawn = {tuple(drawn_noise(seed, clause, draw, (3,))) for seed in (0, -1, 2**63) for clause in (0, 1) for draw in (0, 1)}
    assert len(drawn) == 12
    assert np.array_equal(drawn_noise(5, 1, 0, (100,))[:10], drawn_noise(5, 1, 0, (10,)))
