"""Made-up audio, and what can be measured of audio that comes back."""

import io
from typing import Literal

import numpy as np
import soundfile
from numpy.typing import NDArray

RATE = 24_000
Container = Literal["WAV", "FLAC", "OGG", "MP3", "AIFF", "W64"]


def sine(seconds: float, hertz: float = 440.0, rate: int = RATE) -> NDArray[np.int16]:
    """Shape [samples], at 40 % of full scale."""
    t = np.arange(int(rate * seconds)) / rate
    return (np.sin(2 * np.pi * hertz * t) * 13_107).astype(np.int16)


def file(samples: NDArray[np.int16], rate: int, container: Container, subtype: str | None = None, channels: int = 1) -> bytes:
    """The same samples in every channel."""
    out = io.BytesIO()
    frames = np.stack([samples.astype(np.float32) / 32_768] * channels, axis=1)
    soundfile.write(out, frames, rate, format=container, subtype=subtype)
    return out.getvalue()


def read(data: bytes) -> tuple[NDArray[np.float32], int]:
    """Mono samples and rate of any file that libsndfile reads: a second opinion beside FFmpeg's.

    A FLAC stream whose header does not tell its length is beyond it.
    """
    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    return samples[:, 0].astype(np.float32), rate


def pitch(samples: NDArray[np.generic], rate: int) -> float:
    """The loudest frequency in Hz."""
    spectrum = np.abs(np.fft.rfft(samples.astype(np.float64)))
    return float(np.argmax(spectrum)) * rate / len(samples)
