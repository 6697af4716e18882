"""What the talker draws for a clause, without weights: the network is a fake that remembers its inputs."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.models.piper_talker import CHANNELS, NOISE_FRAMES, PiperTalker, VoiceFile
from engines.parameters import Speech
from engines.payloads import Payload

SOUNDS = "^_$abcdefghijklmnopqrstuvwxyzɪʌəɛæɔʊˈ,. "
VOICE = msgspec.convert(
    {
        "audio": {"sample_rate": 22_050},
        "espeak": {"voice": "en-us"},
        "inference": {"noise_scale": 0.6, "length_scale": 1.0, "noise_w": 0.8},
        "phoneme_id_map": {sound: [number] for number, sound in enumerate(SOUNDS)},
    },
    VoiceFile,
)


class RememberingSession:
    def __init__(self) -> None:
        self.inputs: list[Mapping[str, NDArray[np.generic]]] = []

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[np.generic]]) -> list[NDArray[np.float32]]:
        self.inputs.append(input_feed)
        return [np.zeros((1, CHANNELS, 10), np.float32)]


def drawn(*clauses: str, seed: int = 0) -> list[Mapping[str, NDArray[np.generic]]]:
    session = RememberingSession()
    talker = PiperTalker(session, VOICE, "joe")
    state = talker.open(Speech(voice="joe", seed=seed))
    for clause in clauses:
        talker.run([(state, Payload(text=clause))])
    return session.inputs


def test_each_clause_has_noise_of_its_own():
    first, second = drawn("Yes.", "Yes.")
    for noise in ("duration_noise", "prior_noise"):
        assert not np.array_equal(first[noise], second[noise])


def test_the_seed_changes_both_noises_and_the_same_one_repeats_them():
    (first,), (again,), (other,) = drawn("Yes."), drawn("Yes."), drawn("Yes.", seed=1)
    for noise in ("duration_noise", "prior_noise"):
        assert np.array_equal(first[noise], again[noise])
        assert not np.array_equal(first[noise], other[noise])


def test_a_column_of_noise_for_each_phoneme_and_enough_for_six_seconds():
    (inputs,) = drawn("Yes, I can.")
    assert inputs["duration_noise"].shape == (1, 2, inputs["input"].shape[1])
    assert inputs["prior_noise"].shape == (1, CHANNELS, NOISE_FRAMES)
    assert not np.array_equal(inputs["duration_noise"][0, 0], inputs["duration_noise"][0, 1])
