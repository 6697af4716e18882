import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from engines.models.log_mel import log_mel

REFERENCE = """
import sys
import numpy as np
from transformers import WhisperFeatureExtractor

audio = np.load(sys.argv[1])
extractor = WhisperFeatureExtractor(chunk_length=8)
features = extractor(list(audio), sampling_rate=16000, padding="max_length", return_tensors="np")
np.save(sys.argv[2], features.input_features)
"""


def signals() -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    rng = np.random.default_rng(3)
    seconds = np.arange(8 * 16_000) / 16_000
    made = {
        "noise": rng.uniform(-0.5, 0.5, len(seconds)),
        "quiet tone": 0.001 * np.sin(2 * np.pi * 440 * seconds),
        "speech-like": np.sin(2 * np.pi * 150 * seconds) * np.sin(2 * np.pi * 3 * seconds) ** 2
        + rng.normal(0, 0.01, len(seconds)),
    }
    return {name: audio.astype(np.float32) for name, audio in made.items()}


def test_equals_transformers(tmp_path: Path):
    """In a process of its own: importing transformers warns, and warnings are errors here."""
    audios = signals()
    np.save(tmp_path / "audio.npy", np.stack(list(audios.values())))
    subprocess.run(
        [sys.executable, "-c", REFERENCE, str(tmp_path / "audio.npy"), str(tmp_path / "features.npy")],
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    for (name, audio), expected in zip(audios.items(), np.load(tmp_path / "features.npy"), strict=True):
        np.testing.assert_allclose(log_mel(audio), expected, atol=1e-4, err_msg=name)


def test_silence_is_finite_and_flat():
    features = log_mel(np.zeros(16_000, np.float32))
    assert features.shape == (80, 100)
    assert np.all(features == features[0, 0])
