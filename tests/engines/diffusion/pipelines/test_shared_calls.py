import gc
import logging
import weakref

import numpy as np
import pytest
import torch

from fakes import tiny_pipelines
from fakes.tiny_painters import Request, alone, known, served, together
from fakes.tiny_pipelines import BY_NAME, TinyPipeline

TOLERANCE = 1e-5
MIXED = (
    Request("a cat", steps=4, seed=0, guidance=4.0),
    Request("a dog on a boat", steps=3, seed=1, guidance=6.0, joins_after=1),
    Request("a cow", steps=3, seed=2, guidance=4.0, width=48, joins_after=2),
    Request("a house", steps=5, seed=3, guidance=1.0, joins_after=3),
    Request("a tree", steps=2, seed=4, guidance=3.0, joins_after=4),
)
QUICK = ("stable_diffusion", "flux", "wan")
"""A UNet, a flow and a film."""
EACH = [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in BY_NAME]


@pytest.mark.parametrize("name", EACH)
def test_a_job_alone_gives_what_the_library_gives(name: str):
    pipeline = known(name)
    wanted = MIXED[0].by_the_library_alone(BY_NAME[name], pipeline)
    np.testing.assert_allclose(alone(pipeline, MIXED[0].begin(pipeline)), wanted, atol=TOLERANCE)


@pytest.mark.parametrize("name", EACH)
def test_jobs_of_all_kinds_share_forwards_and_give_what_the_library_gives_each(name: str):
    pipeline = known(name)
    got = together(pipeline, MIXED)
    for request, one in zip(MIXED, got.pictures, strict=True):
        np.testing.assert_allclose(one, request.by_the_library_alone(BY_NAME[name], pipeline), atol=TOLERANCE)
    assert got.forwards < 0.75 * got.calls


@pytest.mark.parametrize("name", EACH)
def test_every_network_is_shared(name: str):
    assert {site for site, traits in known(name).known.traits.items() if traits.single} == set()


def test_a_network_whose_rows_are_not_independent_is_called_for_one_at_a_time(caplog: pytest.LogCaptureFixture):
    def make() -> TinyPipeline:
        pipeline = tiny_pipelines.stable_diffusion()
        unet = pipeline.components["unet"]
        assert isinstance(unet, torch.nn.Module)
        unet.register_forward_hook(lambda _module, _args, output: (output[0] + output[0].mean(),))
        return pipeline

    with caplog.at_level(logging.WARNING):
        pipeline = served(make)
    assert "calls of unet.__call__ are made one at a time" in caplog.text
    requests = [Request("a cat", 2, 0, 4.0), Request("a dog", 2, 1, 4.0)]
    got = together(pipeline, requests)
    for request, one in zip(requests, got.pictures, strict=True):
        np.testing.assert_allclose(one, request.by_the_library_alone(make, pipeline), atol=TOLERANCE)
    assert got.forwards == got.calls - 3  # two prompts each, and the pictures, were encoded and decoded together


def test_a_job_that_is_dropped_leaves_nothing_and_costs_no_other():
    pipeline = known("flux")
    stays = MIXED[0].begin(pipeline)
    for calls in range(6):
        leaves = MIXED[1].begin(pipeline)
        for _ in range(calls):
            pipeline.advance([leaves])
        gone = weakref.ref(leaves)
        with torch.no_grad():
            leaves.drop()
        del leaves
        gc.collect()
        assert gone() is None
    np.testing.assert_allclose(alone(pipeline, stays), MIXED[0].by_the_library_alone(BY_NAME["flux"], pipeline), atol=TOLERANCE)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("name", [pytest.param("qwen_image", marks=pytest.mark.full), "z_image"])
def test_prompts_of_unequal_length_share_every_step(name: str):
    pipeline = known(name)
    requests = [Request("a cat", 4, 0, 4.0), Request("a dog on a boat in a storm", 4, 1, 4.0)]
    got = together(pipeline, requests)
    for request, one in zip(requests, got.pictures, strict=True):
        np.testing.assert_allclose(one, request.by_the_library_alone(BY_NAME[name], pipeline), atol=TOLERANCE)
    steps_and_decoding = 4 * pipeline.known.habits.per_step + 1
    assert got.forwards <= steps_and_decoding + 2 * pipeline.known.habits.head
    assert got.calls - got.forwards >= steps_and_decoding


def test_a_forward_that_raises_for_several_leaves_them_where_they_were():
    pipeline = served(tiny_pipelines.stable_diffusion)
    unet = pipeline.pipeline.components["unet"]
    assert isinstance(unet, torch.nn.Module)
    jobs = [request.begin(pipeline) for request in (MIXED[0], MIXED[1])]
    for _ in range(2):
        pipeline.advance(jobs)

    def too_many(_module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        if len(inputs[0]) > 2:
            raise MemoryError("no room for so many")

    unet.register_forward_pre_hook(too_many)
    with pytest.raises(MemoryError):
        pipeline.advance(jobs)
    for job, request in zip(jobs, MIXED, strict=False):
        wanted = request.by_the_library_alone(tiny_pipelines.stable_diffusion, pipeline)
        np.testing.assert_allclose(alone(pipeline, job), wanted, atol=TOLERANCE)


def test_a_pipeline_that_raises_ends_its_own_job_alone():
    pipeline = known("stable_diffusion")

    def raises(*_: object) -> None:
        raise RuntimeError("not this one")

    good = MIXED[0].begin(pipeline)
    bad = pipeline.begin({**MIXED[1].arguments(pipeline), "callback_on_step_end": raises}, 0, steps=3)
    for _ in range(2):
        pipeline.advance([good, bad])
    answers = pipeline.advance([good, bad])
    assert answers[0] == []
    assert isinstance(answers[1], RuntimeError)
    bad.drop()
    wanted = MIXED[0].by_the_library_alone(BY_NAME["stable_diffusion"], pipeline)
    np.testing.assert_allclose(alone(pipeline, good), wanted, atol=TOLERANCE)


def test_a_pipeline_that_cannot_paint_small_is_tried_at_its_own_size():
    def make() -> TinyPipeline:
        pipeline = tiny_pipelines.stable_diffusion()
        unet = pipeline.components["unet"]
        assert isinstance(unet, torch.nn.Module)

        def too_small(_module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            if inputs[0].shape[-1] < 16:
                raise ValueError("too small")

        unet.register_forward_pre_hook(too_small)
        return pipeline

    assert {site for site, traits in served(make).known.traits.items() if traits.single} == set()


def test_a_preview_costs_nothing_but_its_decoding():
    pipeline = known("stable_diffusion")
    before = pipeline.forwards
    alone(pipeline, MIXED[0].begin(pipeline))
    plain = pipeline.forwards - before
    before = pipeline.forwards
    alone(pipeline, MIXED[0].begin(pipeline, previews=2))
    assert pipeline.forwards - before == plain + 2
