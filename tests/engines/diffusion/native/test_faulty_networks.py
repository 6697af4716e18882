"""Networks that do not keep their word: what it costs, and whom."""

from collections.abc import Sequence
from typing import cast

import pytest
import torch
from torch import Tensor

from engines.diffusion.native import Finished
from engines.diffusion.native.context import RollingContext
from engines.diffusion.native.model import NativeModel
from engines.models.diffusion import DiffusionModel
from engines.models.diffusion import Job as JobContract
from engines.models.options import NativeOptions
from engines.parameters import Denoising
from engines.worker.job_calls import Advanced, advance
from fakes.rollouts import finished, rollout, shown, world
from fakes.tiny_world import Asked, Seen, TinyWorld, acting, frame


def test_a_network_that_writes_into_what_sessions_share_is_found_out() -> None:
    network, model = world()
    state = model.open(Denoising())
    rollout(model, state, [0])
    fork, honest = model.fork(state, Denoising()), network.finish

    def careless(content: Seen, cond: Asked, x: Tensor) -> Finished[Seen]:
        content.frames.items[-1].view(-1)[0] += 1
        return honest(content, cond, x)

    network.finish = careless
    job = model.begin(state, acting(1, steps=1))
    (outcome,) = model.advance([job])
    assert str(outcome) == "the model has written into its session's content: it must make new parts instead"
    network.finish = honest
    assert isinstance(model.advance([model.begin(fork, acting(1, steps=1))])[0], Exception)  # it holds the same frame
    assert len(rollout(model, model.open(Denoising()), [0, 1])) == 2


def test_values_that_are_not_finite_end_their_own_job_and_are_not_kept() -> None:
    network, model = world(pad_to=2)
    good = shown(model, model.open(Denoising(seed=1, steps=1)), acting(0))
    honest = network.denoise

    def broken(x: Tensor, t: Tensor, cond: Sequence[Asked], contents: Sequence[Seen]) -> Tensor:
        clean = honest(x, t, cond, contents)
        clean[1] = float("nan")
        return clean

    network.denoise = broken
    states = [model.open(Denoising(seed=1, steps=1)), model.open(Denoising(seed=2, steps=1))]
    before = model.snapshot(states[1])
    answers = model.advance([model.begin(state, acting(0)) for state in states])
    assert isinstance(answers[0], list)
    assert frame(answers[0]).tobytes() == good.tobytes()
    assert str(answers[1]) == "the network's values are not all finite"
    assert model.snapshot(states[1]) == before


def test_a_call_that_raises_leaves_every_job_as_it_was() -> None:
    network, model = world(pad_to=2)
    alone = [shown(model, model.open(Denoising(seed=seed)), acting(0)) for seed in (1, 2)]
    jobs = [model.begin(model.open(Denoising(seed=seed)), acting(0)) for seed in (1, 2)]
    model.advance(jobs)
    honest = network.denoise
    network.denoise = lambda x, t, cond, contents: x[:1]
    with pytest.raises(
        RuntimeError, match=r"denoise: expected clean values as torch.float32 of shape \(2, 2, 4, 4\) on cpu, got"
    ):
        model.advance(jobs)
    network.denoise = honest
    assert [frame(produced).tobytes() for produced in finished(model, jobs)] == [each.tobytes() for each in alone]


def test_an_end_that_raises_leaves_every_job_as_it_was() -> None:
    network, model = world(pad_to=2)
    alone = shown(model, model.open(Denoising(seed=1)), acting(0))
    jobs = [model.begin(model.open(Denoising(seed=1)), acting(action)) for action in (0, 1)]
    model.advance(jobs)
    model.advance(jobs)
    honest = network.finish

    def clumsy(content: Seen, cond: Asked, x: Tensor) -> Finished[Seen]:
        if torch.equal(cond.action, jobs[1].cond.action):
            raise RuntimeError("clumsy")
        return honest(content, cond, x)

    network.finish = clumsy
    with pytest.raises(RuntimeError, match="clumsy"):
        model.advance(jobs)
    assert [(job.calls_left, job.session.jobs) for job in jobs] == [(1, 0)] * 2
    assert frame(finished(model, jobs[:1])[0]).tobytes() == alone.tobytes()


@pytest.mark.parametrize(
    ("end", "fault"),
    [
        (None, "cannot unpack"),
        (Finished([], cast(Seen, None)), "content: expected Seen, got NoneType"),
        (Finished([], Seen(cast(RollingContext, None), TinyWorld().empty().tokens)), "content.frames: expected RollingContext"),
    ],
)
def test_an_end_that_is_none_costs_its_own_job_alone(end: Finished[Seen], fault: str) -> None:
    network, model = world(pad_to=2)
    alone = shown(model, model.open(Denoising(seed=1)), acting(0))
    jobs = [model.begin(model.open(Denoising(seed=1)), acting(action)) for action in (0, 1)]
    model.advance(jobs)
    model.advance(jobs)
    honest = network.finish
    network.finish = lambda content, cond, x: end if cond is jobs[1].cond else honest(content, cond, x)
    good, wrong = advance(cast(DiffusionModel[object, JobContract], model), jobs).outcomes
    assert isinstance(good, Advanced)
    assert frame(good.produced).tobytes() == alone.tobytes()
    assert isinstance(wrong, Exception)
    assert fault in str(wrong)


def test_a_network_in_inference_mode_may_make_content() -> None:
    network, model = world()
    expected = rollout(model, model.open(Denoising()), [0, 1, 2])
    for name in ("empty", "prepare", "finish", "denoise"):
        setattr(network, name, torch.inference_mode()(getattr(network, name)))
    again = NativeModel(network, NativeOptions())
    assert rollout(again, again.open(Denoising()), [0, 1, 2]) == expected


def test_a_network_that_tells_places_apart_gets_one_row_a_forward(caplog: pytest.LogCaptureFixture) -> None:
    """As some kernels do, in the last bits."""
    network, model = world(pad_to=4)
    model.warm_up()
    assert network.batches[-1] == 4, "it does not, so far"
    honest = network.denoise
    network.denoise = lambda x, t, cond, contents: honest(x, t, cond, contents) + torch.arange(len(x)).reshape(-1, 1, 1, 1) * 1e-6
    model.warm_up()
    assert "depend on its place" in caplog.text
    alone = [shown(model, model.open(Denoising(seed=seed)), acting(seed)).tobytes() for seed in range(3)]
    jobs = [model.begin(model.open(Denoising(seed=seed)), acting(seed)) for seed in range(3)]
    assert [frame(produced).tobytes() for produced in finished(model, jobs)] == alone
    assert network.batches[-3:] == [1, 1, 1]
