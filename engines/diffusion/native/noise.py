"""Noise from counters: what is drawn depends on its name alone, and on no batch, process, thread or draw before it.

Philox gives the bits (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") and Box and Muller's formula in float64
makes them normal: the sequence of bits is one that numpy keeps for ever, which it does not promise of its normal numbers.
"""

import hashlib
import math
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

START = 0
"""The draw that a job begins with. A model that draws more, counts on from here."""


class Source(NamedTuple):
    """One job's noise: of the `job`th that went well, from 0, in a session of that name. Any whole number will do as a seed."""

    seed: int
    session: str
    job: int

    def normal(self, draw: int, shape: tuple[int, ...]) -> Tensor:
        """Standard normal float32 of this shape, on the CPU. A longer one begins as a shorter one does."""
        count = math.prod(shape)
        bits = np.random.Philox(key=self._key(draw)).random_raw(count + count % 2).reshape(-1, 2)
        # The upper 53 bits, as numbers in (0, 1], so that the logarithm is finite.
        even = ((bits >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
        radius, angle = np.sqrt(-2.0 * np.log(even[:, 0])), 2.0 * math.pi * even[:, 1]
        pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)
        return torch.as_tensor(pairs.reshape(-1)[:count].reshape(shape))

    def _key(self, draw: int) -> NDArray[np.uint64]:
        name = f"{self.seed} {self.job} {draw} {self.session}".encode()
        return cast(NDArray[np.uint64], np.frombuffer(hashlib.blake2b(name, digest_size=16).digest(), "<u8"))
