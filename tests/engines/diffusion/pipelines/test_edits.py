"""Edits by pipelines that only paint from prompts: the library's own for that, on the same networks."""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engines.diffusion.pipelines.served import Served
from fakes.tiny_painters import Request, alone, go_on, together, ways
from fakes.tiny_pipelines import BY_NAME, TinyPipeline

TOLERANCE = 1e-5
NAMES = ("stable_diffusion", "flux", "stable_diffusion_3", "qwen_image", "z_image")
GIVEN = {"AutoPipelineForImage2Image": frozenset({"image"}), "AutoPipelineForInpainting": frozenset({"image", "mask_image"})}


def makers(name: str) -> list[tuple[Served, Callable[[], TinyPipeline]]]:
    """Paint, edit, edit under a mask: by whom, and by which pipeline of the library alone."""
    found = ways(name)
    return [(found.own, BY_NAME[name])] + [(found.of(given), derived(name, task)) for task, given in GIVEN.items()]


@functools.cache
def derived(name: str, task: str) -> Callable[[], TinyPipeline]:
    library: Any = importlib.import_module("diffusers.pipelines.auto_pipeline")

    def make() -> TinyPipeline:
        pipeline = getattr(library, task).from_pipe(BY_NAME[name]())
        pipeline.set_progress_bar_config(disable=True)
        return pipeline

    return make


REQUESTS = (
    Request("a cat", steps=4, seed=0, guidance=4.0),
    Request("a dog on a boat", steps=5, seed=1, guidance=4.0),
    Request("a cow", steps=4, seed=2, guidance=3.0, joins_after=1),
)


@pytest.mark.parametrize("name", NAMES)
def test_edits_share_calls_with_prompts_and_give_what_the_library_gives_each(name: str):
    found = makers(name)
    got = together(ways(name).own, REQUESTS, [served for served, _ in found])
    for request, one, (served, make) in zip(REQUESTS, got.pictures, found, strict=True):
        np.testing.assert_allclose(one, request.by_the_library_alone(make, served), atol=TOLERANCE)
    assert got.forwards < 0.85 * got.calls


@pytest.mark.parametrize("name", [name for name in NAMES if name != "z_image"])  # of which the library's edits want other outputs
@pytest.mark.parametrize("editor", [1, 2])
def test_steps_of_an_edit_are_those_of_a_prompt(name: str, editor: int):
    (paints, _), (edits, _) = makers(name)[0], makers(name)[editor]
    request = Request("a cat", steps=5, seed=0, guidance=4.0)
    got = together(paints, [request, request], [paints, edits])
    habits = paints.known.habits
    assert got.calls - got.forwards >= habits.head + 3 * habits.per_step


@pytest.mark.parametrize("name", NAMES)
def test_an_edit_that_another_run_goes_on_with_ends_the_same(name: str):
    edits, _ = makers(name)[1]
    request = Request("a cat", steps=6, seed=0, guidance=4.0)
    plain = alone(edits, request.begin(edits))
    job = request.begin(edits)
    while job.step < 2:
        edits.advance([job])
    with torch.no_grad():
        job.change({})
    np.testing.assert_allclose(alone(edits, job), plain, atol=5e-3)


def test_a_later_preview_of_an_edit_under_a_mask_is_nearer_to_the_end():
    edits, _ = makers("stable_diffusion_3")[2]
    job = Request("a cat", steps=8, seed=0, guidance=4.0).begin(edits, previews=3)
    shown: list[NDArray[np.floating]] = []
    while job.calls_left:
        shown += go_on(edits, job)
    *previews, end = shown
    errors = [float(np.abs(preview - end).mean()) for preview in previews]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("name", ["flux", "qwen_image", "z_image"])
def test_where_a_second_run_would_show_something_else_previews_are_refused(name: str):
    edits, _ = makers(name)[2]
    assert edits.known.habits.not_shown
