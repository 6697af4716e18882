"""Audio payloads as the models that hear take them: checked, then floats at 16 kHz."""

from typing import cast

import numpy as np

from engines.models import InvalidInput
from engines.payloads import Payload
from engines.resampling import HIGHEST_RATE, LOWEST_RATE, Pcm, Samples, resample, to_float

RATE = 16_000


def pcm_and_rate(payload: Payload) -> tuple[Pcm, int]:
    """The samples of `engines.payloads.audio` and their rate in Hz. Raises InvalidInput."""
    pcm, rate = payload.arrays.get("pcm"), payload.attributes.get("rate")
    if pcm is None or pcm.dtype != "int16" or len(pcm.shape) != 1:
        got = "nothing" if pcm is None else f"{pcm.dtype} of shape {pcm.shape}"
        raise InvalidInput(f"pcm: expected mono int16 samples of shape [n], got {got}")
    return cast(Pcm, pcm.numpy()), checked_rate(rate)


def checked_rate(rate: object) -> int:
    """Raises InvalidInput."""
    if type(rate) is not int or not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise InvalidInput(f"rate: expected a whole number of Hz from {LOWEST_RATE} to {HIGHEST_RATE}, got {rate!r}")
    return rate


def heard(payload: Payload) -> Samples | InvalidInput:
    """A whole payload as floats at 16 kHz. The error is returned, because one bad row must not fail its whole batch."""
    try:
        pcm, rate = pcm_and_rate(payload)
    except InvalidInput as bad:
        return bad
    return resample(to_float(pcm), rate, RATE)


def padded_to(samples: Samples, length: int) -> Samples:
    """`samples` with silence behind them up to `length` samples."""
    return np.pad(samples, (0, max(0, length - len(samples))))
