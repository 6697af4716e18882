import re
from collections.abc import Callable
from pathlib import Path

import jiwer
import msgspec
import numpy as np
import pytest

from engines.models import InvalidInput, Produced
from engines.models.whisper import Transcribing, Whisper
from engines.parameters import Recognition
from engines.payloads import Payload, audio
from engines.resampling import Samples, to_pcm
from recordings import RATE, Utterance, read_sentences

pytestmark = pytest.mark.real_models


@pytest.fixture(scope="module")
def whisper(weights: Callable[[str], Path]) -> Whisper:
    return Whisper.load(weights("whisper-tiny-en"), {})


@pytest.fixture(scope="module")
def sentences() -> list[Utterance]:
    return read_sentences()


def payload(samples: Samples, rate: int = RATE) -> Payload:
    return audio(to_pcm(samples).tobytes(), rate)


def answer(whisper: Whisper, payload: Payload, state: Transcribing | None = None) -> Produced:
    (rows,) = whisper.run([(state or whisper.open(Recognition()), payload)])
    assert not isinstance(rows, InvalidInput)
    (produced,) = rows
    return produced


def plain(text: str) -> str:
    text = text.lower().replace("mr.", "mister").replace("-", " ")
    return " ".join(re.sub(r"[^a-z' ]", " ", text).split())


def wer(references: list[str], texts: list[str]) -> float:
    return jiwer.wer([plain(text) for text in references], [plain(text) for text in texts])


def test_recordings(whisper: Whisper, sentences: list[Utterance]):
    texts = [answer(whisper, payload(sentence.samples)).payload.text for sentence in sentences]
    assert wer([sentence.text for sentence in sentences], texts) <= 0.1
    assert texts[0].startswith("And")
    assert texts[0].endswith(".")


def test_batch_equals_solo(whisper: Whisper, sentences: list[Utterance]):
    solo = [answer(whisper, payload(sentence.samples)).payload for sentence in sentences]
    batch = whisper.run([(whisper.open(Recognition()), payload(sentence.samples)) for sentence in sentences])
    assert batch == [[Produced(one, units=1)] for one in solo]


def test_half_a_minute_in_one_turn(whisper: Whisper, sentences: list[Utterance]):
    gap = np.zeros(RATE // 2, np.float32)
    chosen = [*sentences, sentences[0]]
    samples = np.concatenate([part for sentence in chosen for part in (sentence.samples, gap)])
    assert len(samples) / RATE > 31
    produced = answer(whisper, payload(samples)).payload
    assert wer([" ".join(sentence.text for sentence in chosen)], [produced.text]) <= 0.1
    assert produced.attributes["audio_s"] == pytest.approx(len(samples) / RATE, abs=0.001)


def not_speech(name: str, seconds: float) -> Samples:
    rng = np.random.default_rng(5)
    time = np.arange(int(seconds * RATE)) / RATE
    beat = time % 0.25
    pitch = 220 * 2 ** (np.array([0, 4, 7, 12, 7, 4])[(time / 0.25).astype(int) % 6] / 12)
    kinds = {
        "silence": np.zeros(len(time)),
        "quiet room": rng.normal(0, 3e-4, len(time)),
        "white noise": rng.normal(0, 0.1, len(time)),
        "hum": 0.1 * np.sin(2 * np.pi * 50 * time),
        "melody": 0.3 * np.exp(-6 * beat) * np.sin(2 * np.pi * pitch * beat),
        "beep": 0.2 * np.sin(2 * np.pi * 1_000 * time),
    }
    return kinds[name].astype(np.float32)


@pytest.mark.parametrize("name", ["silence", "quiet room", "white noise", "hum", "melody", "beep"])
@pytest.mark.parametrize("seconds", [0.1, 1.5, 9.0])
def test_nobody_speaks(whisper: Whisper, name: str, seconds: float):
    assert answer(whisper, payload(not_speech(name, seconds))).payload.text == ""


def test_no_samples(whisper: Whisper):
    assert answer(whisper, payload(np.zeros(0, np.float32))).payload == Payload(attributes={"audio_s": 0.0})


def test_later_utterance_starts_with_a_space_at_its_time(whisper: Whisper, sentences: list[Utterance]):
    state = whisper.open(Recognition())
    spoken = payload(sentences[4].samples)
    silent = payload(np.zeros(RATE, np.float32))
    later = Payload(arrays=spoken.arrays, attributes={**spoken.attributes, "start_s": 7.5})
    texts = [answer(whisper, one, state) for one in (silent, spoken, silent, later)]
    assert [one.payload.text[:4] for one in texts] == ["", "He m", "", " He "]
    assert texts[3].pts == 7.5


def test_bad_row_leaves_the_others_alone(whisper: Whisper, sentences: list[Utterance]):
    bad, good = whisper.run([(whisper.open(Recognition()), row) for row in (Payload(), payload(sentences[4].samples))])
    assert isinstance(bad, InvalidInput)
    assert "pcm" in str(bad)
    assert not isinstance(good, InvalidInput)
    assert "amiable" in good[0].payload.text


def test_utterances_of_like_length_share_a_batch(whisper: Whisper):
    state = whisper.open(Recognition())
    keys = [whisper.batch_key(state, payload(np.zeros(int(seconds * RATE), np.float32))) for seconds in (1, 11, 12.5, 12.9)]
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_other_language_is_refused(whisper: Whisper):
    with pytest.raises(InvalidInput, match=r"language: expected 'en'.*'de'"):
        whisper.open(Recognition(language="de"))


def test_unknown_option_is_named(weights: Callable[[str], Path]):
    with pytest.raises(msgspec.ValidationError, match="beams"):
        Whisper.load(weights("whisper-tiny-en"), {"beams": 5})
