"""With a network that knows the clean picture, every step foretells it."""

from collections.abc import Callable
from typing import Any

import diffusers
import pytest
import torch

from engines.diffusion.pipelines.foretold import foretold
from engines.diffusion.pipelines.run import Stepped

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # diffusers
FLOWS: list[tuple[str, dict[str, Any]]] = [
    ("FlowMatchEulerDiscreteScheduler", {}),
    ("UniPCMultistepScheduler", {"prediction_type": "flow_prediction", "use_flow_sigmas": True}),
]
NOISES: list[tuple[str, dict[str, Any]]] = [
    ("DDIMScheduler", {"clip_sample": False}),
    ("EulerDiscreteScheduler", {}),
    ("DPMSolverMultistepScheduler", {}),
    ("UniPCMultistepScheduler", {}),
]


def stepped(
    name: str, settings: dict[str, Any], predicted: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], clean: torch.Tensor
):
    """After three of eight steps from the noise."""
    scheduler: Any = getattr(diffusers, name)(**settings)
    scheduler.set_timesteps(8)
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(1))
    sample = noise * float(scheduler.init_noise_sigma) if hasattr(scheduler, "init_noise_sigma") else noise
    if name != "FlowMatchEulerDiscreteScheduler":
        sample = scheduler.add_noise(clean, noise, scheduler.timesteps[:1])
    output = predicted(noise, clean)
    for time in scheduler.timesteps[:2]:
        sample = scheduler.step(output, time, sample, return_dict=False)[0]
    outcome = scheduler.step(output, scheduler.timesteps[2], sample, return_dict=False)
    return Stepped(scheduler, output, sample, outcome, outcome[0])


@pytest.mark.parametrize(("name", "settings"), NOISES)
def test_of_networks_that_foretell_the_noise(name: str, settings: dict[str, Any]):
    clean = torch.randn((1, 4, 8, 8), generator=torch.Generator().manual_seed(0))
    left = stepped(name, settings, lambda noise, _: noise, clean)
    torch.testing.assert_close(foretold(left), clean, atol=1e-2, rtol=0)
    assert (left.latents - clean).abs().max() > 0.5


@pytest.mark.parametrize(("name", "settings"), FLOWS)
def test_of_networks_that_foretell_a_flow(name: str, settings: dict[str, Any]):
    clean = torch.randn((1, 4, 8, 8), generator=torch.Generator().manual_seed(0))
    left = stepped(name, settings, lambda noise, clean: noise - clean, clean)
    torch.testing.assert_close(foretold(left), clean, atol=1e-2, rtol=0)
    assert (left.latents - clean).abs().max() > 0.5
