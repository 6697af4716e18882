import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engines.models.log_mel import log_mel

REFERENCE = """
import sys
import numpy as np
from transformers import WhisperFeatureExtractor

audio = np.load(sys.argv[1])
extractor = WhisperFeatureExtractor(chunk_length=8)
features = extractor(audio, sampling_rate=16000, padding="max_length", return_tensors="np")
np.save(sys.argv[2], features.input_features[0])
"""


def signal(name: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    rng = np.random.default_rng(3)
    seconds = np.arange(8 * 16_000) / 16_000
    signals = {
        "noise": rng.uniform(-0.5, 0.5, len(seconds)),
        "quiet tone": 0.001 * np.sin(2 * np.pi * 440 * seconds),
        "speech-like": np.sin(2 * np.pi * 150 * seconds) * np.sin(2 * np.pi * 3 * seconds) ** 2
        + rng.normal(0, 0.01, len(seconds)),
    }
    return signals[name].astype(np.float32)


@pytest.mark.parametrize("name", ["noise", "quiet tone", "speech-like"])
def test_equals_transformers(name: str, tmp_path: Path):
    """In a process of its own: importing transformers warns, and warnings are errors here."""
    audio = signal(name)
    np.save(tmp_path / "audio.npy", audio)
    subprocess.run(
        [sys.executable, "-c", REFERENCE, str(tmp_path / "audio.npy"), str(tmp_path / "features.npy")],
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    np.testing.assert_allclose(log_mel(audio), np.load(tmp_path / "features.npy"), atol=1e-4)


def test_silence_is_finite_and_flat():
    features = log_mel(np.zeros(16_000, np.float32))
    assert features.shape == (80, 100)
    assert np.all(features == features[0, 0])
