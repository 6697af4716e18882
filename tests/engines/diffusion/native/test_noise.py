"""Noise from counters: the same for the same name, anywhere; another for any other."""

import numpy as np
import pytest
import torch

from engines.diffusion.native.noise import Source
from fakes.listed import listed

GOLDEN = [0.28205723, -0.44643721, -0.72856241, 0.71638513, -0.11737584, 0.25635114, -0.40445319, -2.5246377]


def test_it_is_what_it_has_always_been() -> None:
    drawn = Source(42, "arm 7", 3).normal(0, (8,))
    assert listed(drawn) == pytest.approx(GOLDEN, rel=1e-6)


def test_nothing_drawn_before_and_no_global_seed_changes_it() -> None:
    first = Source(1, "", 0).normal(0, (5,))
    np.random.seed(5)
    torch.default_generator.manual_seed(5)
    Source(2, "", 0).normal(0, (100,))
    assert torch.equal(Source(1, "", 0).normal(0, (5,)), first)
    assert torch.equal(Source(1, "", 0).normal(0, (3,)), first[:3])


def test_every_part_of_the_name_matters() -> None:
    names = [
        (Source(seed, session, job), draw)
        for seed in (-1, 0, 2**80)
        for session in ("", "1")
        for job in (0, 1)
        for draw in (0, 1)
    ]
    drawn = [source.normal(draw, (4,)) for source, draw in names]
    assert len({tuple(listed(values)) for values in drawn}) == len(names)


def test_it_is_normal() -> None:
    drawn = torch.cat([Source(0, "", job).normal(0, (10_000,)) for job in range(20)]).double()
    assert float(drawn.mean()) == pytest.approx(0, abs=0.01)
    assert float(drawn.std()) == pytest.approx(1, abs=0.01)
    assert float((drawn.abs() > 1.959964).double().mean()) == pytest.approx(0.05, abs=0.003)
    assert float((drawn**4).mean()) == pytest.approx(3, abs=0.1)
