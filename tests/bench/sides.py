"""Two answerers that are compared: measured in turns, so that the machine's noise hits both."""

import statistics
from collections.abc import Awaitable, Callable

import msgspec
import numpy as np

from bench.cpu_time import cpu_s
from bench.load import Answerer, Burst


class Side(msgspec.Struct, frozen=True):
    """`pids` are the processes between a question and the model, without the one that computes."""

    answerer: Answerer
    pids: tuple[int, ...]

    def cpu_s(self) -> float:
        return sum(map(cpu_s, self.pids))


class Blocks(msgspec.Struct):
    """What one side did in a measurement."""

    bursts: list[Burst] = []
    cpu_s: float = 0.0

    @property
    def tokens_per_s(self) -> float:
        """Median of the blocks, so that one disturbed block decides nothing."""
        return statistics.median(burst.tokens_per_s for burst in self.bursts)

    @property
    def questions_per_s(self) -> float:
        return statistics.median(len(burst.answers) / burst.wall_s for burst in self.bursts)

    @property
    def cpu_us_per_token(self) -> float:
        return self.cpu_s / sum(burst.tokens for burst in self.bursts) * 1e6

    @property
    def first_ms(self) -> list[float]:
        return [answer.first_s * 1000 for burst in self.bursts for answer in burst.answers]

    def first_quantile_ms(self, share: float) -> float:
        return float(np.quantile(self.first_ms, share))


async def in_turns(
    one: Side, other: Side, blocks: int, run: Callable[[Answerer, int], Awaitable[Burst]]
) -> tuple[Blocks, Blocks]:
    """`run(answerer, block)` for both; who begins changes from block to block."""
    taken = {one: Blocks(), other: Blocks()}
    for block in range(blocks):
        for side in (one, other) if block % 2 == 0 else (other, one):
            before = side.cpu_s()
            taken[side].bursts.append(await run(side.answerer, block))
            taken[side].cpu_s += side.cpu_s() - before
    return taken[one], taken[other]
