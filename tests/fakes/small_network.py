"""A DIFFUSION model whose steps are real work: a small network with random weights."""

from collections.abc import Sequence

import torch

from engines.models import Produced
from fakes.step_counter import Count, StepCounter

WIDTH = 1024
LAYERS = 8


class SmallNetwork(StepCounter):
    """33 MB of float32. Its rows are not told apart: what they cost is what counts."""

    def __init__(self) -> None:
        super().__init__()
        torch.set_num_threads(1)
        self._layers = [torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(n)) / 32 for n in range(LAYERS)]

    def advance(self, jobs: Sequence[Count]) -> list[list[Produced] | Exception]:
        self.step(sum(job.rows for job in jobs))
        return super().advance(jobs)

    def step(self, rows: int) -> None:
        x = torch.ones(rows, WIDTH)
        with torch.inference_mode():
            for layer in self._layers:
                x = torch.tanh(x @ layer)
