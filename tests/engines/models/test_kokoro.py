from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.kokoro import Kokoro
from engines.parameters import Speech
from engines.payloads import Payload

pytestmark = pytest.mark.real_models

HEART = Speech(voice="heart")


@pytest.fixture(scope="module")
def kokoro(weights: Callable[[str], Path]) -> Kokoro:
    return Kokoro.load(weights("kokoro"), {})


def narrate(kokoro: Kokoro, text: str, speech: Speech = HEART) -> list[Produced]:
    state = kokoro.open(speech)
    (produced,) = kokoro.run([(state, Payload(text=text, attributes={"clause": 0, "written_end": len(text)}))])
    assert not isinstance(produced, InvalidInput), produced
    return produced + kokoro.flush(state)


def pcm(chunks: list[Produced]) -> NDArray[np.int16]:
    return np.concatenate([cast(NDArray[np.int16], chunk.payload.arrays["pcm"].numpy()) for chunk in chunks])


def test_a_clause_becomes_audio_that_starts_at_once_and_ends_with_a_breath(kokoro: Kokoro):
    (chunk,) = narrate(kokoro, "Yes, I can.")
    loud = np.flatnonzero(np.abs(pcm([chunk])) > 130)
    assert loud[0] < 0.03 * 24_000
    assert 0.2 < (len(pcm([chunk])) - loud[-1]) / 24_000 < 0.24
    assert chunk.payload.attributes == {"rate": 24_000, "clause": 0, "written_end": 11, "clause_final": True}


def test_the_wanted_rate_and_speed(kokoro: Kokoro):
    usual, telephone, fast = (
        len(pcm(narrate(kokoro, "Yes, I can.", speech)))
        for speech in (HEART, Speech(voice="heart", rate=8_000), Speech(voice="af_heart", speed=1.5))
    )
    assert telephone == pytest.approx(usual / 3, abs=2)
    assert fast < 0.8 * usual


def test_british_voices_speak_british(kokoro: Kokoro):
    assert len(pcm(narrate(kokoro, "Rather.", Speech(voice="bm_george")))) > 4_000


def test_nothing_to_speak_gives_no_samples(kokoro: Kokoro):
    assert len(pcm(narrate(kokoro, ""))) == 0


def test_the_same_text_gives_the_same_samples(kokoro: Kokoro):
    assert np.array_equal(pcm(narrate(kokoro, "Yes.")), pcm(narrate(kokoro, "Yes.")))


def test_an_unknown_voice_is_named(kokoro: Kokoro):
    with pytest.raises(InvalidInput, match=r"voice: expected one of .*heart, .*af_heart, .*got 'nobody'"):
        kokoro.open(Speech(voice="nobody"))


def test_a_wrong_option_is_named(weights: Callable[[str], Path]):
    with pytest.raises(msgspec.ValidationError, match="volume"):
        Kokoro.load(weights("kokoro"), {"volume": 3})
