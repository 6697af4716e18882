"""A WAV file as the server wants it: PCM16 mono at 24 kHz."""

import struct
import sys
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import soxr
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.floating[Any]]
RATE_HZ = 24_000
EXTENSIBLE = 0xFFFE
"""The true format stands further back; 1 is PCM, 3 is floats."""
LEAST_S = 0.2
"""The shortest "yes" that sessions take for speech."""


class WavError(ValueError):
    """The question cannot be read; the message is one sentence."""


def read_wav(source: str) -> bytes:
    """`-` is stdin. Raises WavError."""
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as unreadable:
        raise WavError(f"cannot read {source}: {unreadable.strerror}") from unreadable
    return to_speech(data, "stdin" if source == "-" else source)


def to_speech(data: bytes, name: str) -> bytes:
    """PCM16 mono at RATE_HZ of a WAV file's bytes. Raises WavError."""
    samples, rate = _samples(data, name)
    mono = samples.mean(axis=1)
    if rate != RATE_HZ:
        mono = soxr.resample(mono, rate, RATE_HZ)
    if len(mono) < LEAST_S * RATE_HZ:
        raise WavError(f"{name}: expected at least {LEAST_S:g} s of sound, got {len(mono) / RATE_HZ:.2g} s")
    return (np.clip(mono, -1, 1) * 32_767).astype("<i2").tobytes()


def _samples(data: bytes, name: str) -> tuple[Samples, int]:
    """Shape [frames, channels], −1 to 1, and the rate."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise WavError(f"{name} is no WAV file; convert it first, for instance: ffmpeg -i {name} question.wav")
    chunks = _chunks(data)
    layout, sound = chunks.get(b"fmt ", b""), chunks.get(b"data", b"")
    if len(layout) < 16 or not sound:
        raise WavError(f"{name} is a WAV file without sound")
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", layout)
    if kind == EXTENSIBLE and len(layout) >= 26:
        kind = int.from_bytes(layout[24:26], "little")
    if channels == 0 or not 4_000 <= rate <= 192_000:
        raise WavError(f"{name}: expected at least one channel and 4000 to 192000 Hz, got {channels} channels at {rate} Hz")
    whole = len(sound) - len(sound) % (channels * max(1, bits // 8))
    return _scaled(sound[:whole], kind, bits, name).reshape(-1, channels), rate


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """The last chunk may claim more than there is, as in a stream."""
    chunks: dict[bytes, bytes] = {}
    position = 12
    while position + 8 <= len(data):
        size = int.from_bytes(data[position + 4 : position + 8], "little")
        chunks.setdefault(data[position : position + 4], data[position + 8 : position + 8 + size])
        position += 8 + size + size % 2
    return chunks


def _scaled(sound: bytes, kind: int, bits: int, name: str) -> Samples:
    match kind, bits:
        case (1, 8):
            return (np.frombuffer(sound, np.uint8).astype(np.float32) - 128) / 128
        case (1, 16):
            return np.frombuffer(sound, "<i2").astype(np.float32) / 2**15
        case (1, 24):
            wide = np.zeros((len(sound) // 3, 4), np.uint8)
            wide[:, 1:] = np.frombuffer(sound, np.uint8).reshape(-1, 3)
            return wide.view("<i4").reshape(-1).astype(np.float32) / 2**31
        case (1, 32):
            return np.frombuffer(sound, "<i4").astype(np.float32) / 2**31
        case (3, 32):
            return np.frombuffer(sound, "<f4").astype(np.float32)
        case (3, 64):
            return np.frombuffer(sound, "<f8").astype(np.float32)
        case _:
            raise WavError(f"{name}: expected PCM of 8, 16, 24 or 32 bits or floats, got WAV format {kind} with {bits} bits")
