"""G.711, the codec of telephone lines: a byte per sample at 8 kHz.

Laws as in ITU-T G.711 (1988), tables 1 and 2; 16-bit samples are cut to its 13 or 14 bits as in the reference code of
ITU-T G.191. Silence is 0xFF in mu-law and 0xD5 in A-law.
"""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Law: TypeAlias = Literal["pcmu", "pcma"]
RATE_HZ = 8_000

_Codes: TypeAlias = npt.NDArray[np.uint8]
_Values: TypeAlias = npt.NDArray[np.int64]

_MU_BIAS = 33
_MU_HIGHEST = 8158
"""Magnitudes of 14-bit samples above this would need a segment more than there is."""


def decode(data: bytes, law: Law) -> bytes:
    """PCM16 little endian, mono, 8 kHz: two bytes for each one."""
    return _DECODED[law][np.frombuffer(data, np.uint8)].tobytes()


def encode(pcm: bytes, law: Law) -> bytes:
    """One byte for each sample of PCM16 little endian, mono, 8 kHz. An odd number of bytes is a ValueError."""
    return _CODES[law][np.frombuffer(pcm, "<u2")].tobytes()


def _mu_values() -> _Values:
    codes = ~np.arange(256) & 0xFF
    segment, step = codes >> 4 & 7, codes & 15
    magnitude = ((2 * step + _MU_BIAS) << segment) - _MU_BIAS
    return np.where(codes & 0x80, -magnitude, magnitude) << 2


def _a_values() -> _Values:
    codes = np.arange(256) ^ 0x55
    segment, step = codes >> 4 & 7, codes & 15
    magnitude = np.where(segment == 0, 2 * step + 1, (2 * step + 33) << np.maximum(segment - 1, 0))
    return np.where(codes & 0x80, magnitude, -magnitude) << 3


def _mu_codes() -> _Codes:
    samples = _all_samples()
    magnitude = np.minimum(_magnitude(samples) >> 2, _MU_HIGHEST) + _MU_BIAS
    segment = _bit_length(magnitude) - 6
    step = magnitude >> (segment + 1) & 15
    return (~(np.where(samples < 0, 0x80, 0) | segment << 4 | step) & 0xFF).astype(np.uint8)


def _a_codes() -> _Codes:
    samples = _all_samples()
    magnitude = _magnitude(samples) >> 4
    segment = np.maximum(_bit_length(magnitude) - 4, 0)
    step = magnitude >> np.maximum(segment - 1, 0) & 15
    return ((np.where(samples < 0, 0, 0x80) | segment << 4 | step) ^ 0x55).astype(np.uint8)


def _all_samples() -> _Values:
    """Each 16-bit sample, at the place that its two bytes name without a sign."""
    return np.arange(65_536, dtype=np.uint16).view(np.int16).astype(np.int64)


def _magnitude(samples: _Values) -> _Values:
    return np.where(samples < 0, ~samples, samples)


def _bit_length(values: _Values) -> _Values:
    return np.frexp(values)[1].astype(np.int64)


_DECODED: dict[Law, npt.NDArray[np.int16]] = {"pcmu": _mu_values().astype("<i2"), "pcma": _a_values().astype("<i2")}
_CODES: dict[Law, _Codes] = {"pcmu": _mu_codes(), "pcma": _a_codes()}
