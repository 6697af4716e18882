"""What a deployment may ask of a pipeline of diffusers: step caches, LoRA, precision, compiling, devices."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from engines.diffusion.pipelines.compared import psnr_db
from engines.models.diffusers_pipeline import DiffusersPipeline
from engines.models.diffusion import PREVIEW
from engines.parameters import Picture
from engines.payloads import Payload
from fakes import tiny_pipelines
from fakes.ready_painters import CAT, SMALL, folders, mean_error, painted, pixels, ready, to_the_end


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return folders(tmp_path_factory)


@pytest.fixture(scope="module")
def painter(folder: Callable[[str], Path]) -> DiffusersPipeline:
    return ready(folder("picture"))


@pytest.fixture(scope="module")
def film_maker(folder: Callable[[str], Path]) -> DiffusersPipeline:
    return ready(folder("film"))


def test_a_step_cache_saves_forwards_and_stays_near(folder: Callable[[str], Path], film_maker: DiffusersPipeline):
    wanted = Picture(width=32, height=32, steps=12, frames=5, guidance=4.0)
    cached = ready(folder("film"), step_cache={"threshold": 0.3})
    [end] = to_the_end(cached, cached.begin(cached.open(wanted), CAT))
    computed, reused = end.payload.attributes["computed_calls"], end.payload.attributes["reused_calls"]
    assert isinstance(computed, int)
    assert isinstance(reused, int)
    assert computed + reused == 24
    assert reused >= 6
    exact = painted(film_maker, wanted)
    assert psnr_db(pixels(end) / 255, exact / 255) > 30


def test_a_step_cache_can_be_compared_with_what_would_be_without(folder: Callable[[str], Path], film_maker: DiffusersPipeline):
    wanted = Picture(width=32, height=32, steps=12, frames=5, guidance=4.0, previews=1)
    cached = ready(folder("film"), step_cache={"threshold": 0.3, "compare": True})
    job = cached.begin(cached.open(wanted), CAT)
    left = job.calls_left
    preview, end = to_the_end(cached, job)
    told = end.payload.attributes["psnr_db"]
    assert isinstance(told, float)
    assert told == pytest.approx(psnr_db(pixels(end) / 255, painted(film_maker, wanted) / 255), abs=2)
    assert end.payload.attributes["reused_calls"]
    assert preview.payload.attributes[PREVIEW] == 0
    assert left >= 2 * 12


def test_a_job_that_is_changed_or_given_up_is_not_compared(folder: Callable[[str], Path]):
    cached = ready(folder("picture"), step_cache={"threshold": 0.3, "compare": True})
    job = cached.begin(cached.open(SMALL), CAT)
    while job.step < 2:
        cached.advance([job])
    cached.update(job, Payload("a dog"))
    assert "psnr_db" not in to_the_end(cached, job)[-1].payload.attributes
    job = cached.begin(cached.open(SMALL), CAT)
    while job.step < 4:
        cached.advance([job])
    cached.advance([job])
    cached.advance([job])
    cached.abandon(job)
    assert job.calls_left == 0


def test_a_lora_is_in_force_with_its_scale(folder: Callable[[str], Path], painter: DiffusersPipeline, tmp_path: Path):
    tiny_pipelines.save_lora(tmp_path)
    plain = painted(painter, SMALL)
    lora = {"directory": str(tmp_path), "scale": 1.0}
    assert mean_error(painted(ready(folder("picture"), loras=[lora]), SMALL), plain) > 1
    np.testing.assert_array_equal(painted(ready(folder("picture"), loras=[{**lora, "scale": 0.0}]), SMALL), plain)


def test_half_precision_with_what_saves_memory_is_near(folder: Callable[[str], Path], painter: DiffusersPipeline):
    frugal = ready(folder("picture"), dtype="bfloat16", attention_slicing=True, vae_slicing=True, vae_tiling=True)
    assert mean_error(painted(frugal, SMALL), painted(painter, SMALL)) < 4


def test_float16_with_a_vae_that_stays_in_float32_paints(folder: Callable[[str], Path], painter: DiffusersPipeline):
    assert mean_error(painted(ready(folder("picture"), dtype="float16"), SMALL), painted(painter, SMALL)) < 4


def test_compiled_networks_paint_the_same(folder: Callable[[str], Path], painter: DiffusersPipeline):
    compiled = ready(folder("picture"), compile={"backend": "eager"})
    assert mean_error(painted(compiled, SMALL), painted(painter, SMALL)) < 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"offload": "model"}, "options.offload: expected none without a GPU"),
        ({"offload": "sequential"}, "options.offload: expected none without a GPU"),
        ({"device": "cuda"}, "options.device: expected cpu or auto on a machine without a GPU"),
    ],
)
def test_what_wants_a_gpu_is_refused_without_one(folder: Callable[[str], Path], options: dict[str, object], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        DiffusersPipeline.load(folder("picture"), options)


def test_loading_draws_no_bars(folder: Callable[[str], Path], capfd: pytest.CaptureFixture[str]):
    directory = folder("picture")
    capfd.readouterr()
    DiffusersPipeline.load(directory, {})
    assert "Loading" not in capfd.readouterr().err
