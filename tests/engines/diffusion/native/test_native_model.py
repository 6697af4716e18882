"""A tiny world through NativeModel: jobs alone and in company, updates, aborts, forks, guides, snapshots."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from torch import Tensor

from engines.diffusion.native.levels import Parametrisation
from engines.diffusion.native.model import NativeModel
from engines.models import InvalidInput, NoRoom
from engines.models.options import NativeOptions
from engines.parameters import Denoising
from engines.payloads import Array, Payload
from fakes.listed import listed
from fakes.rollouts import Job, finished, rollout, shown, world
from fakes.tiny_world import FRAME, Hoarder, TinyWorld, TinyWorldModel, acting, frame


@pytest.mark.parametrize("takes", ["flow", "edm"])
@pytest.mark.parametrize("solver", ["euler", "heun"])
def test_padded_rows_are_the_same_to_the_last_bit_whatever_else_runs(takes: Parametrisation, solver: str) -> None:
    """Other steps, step counts and parametrisations beside them, joining and leaving in between."""
    network, model = world(takes, pad_to=4, solver=solver)
    wanted = [
        Denoising(seed=1),
        Denoising(seed=2, steps=5),
        Denoising(seed=3, sampler="edm"),
        Denoising(seed=4, sampler="flow", steps=1),
    ]
    alone = [shown(model, model.open(each), acting(number)) for number, each in enumerate(wanted)]
    network.batches.clear()
    jobs = [model.begin(model.open(each), acting(number)) for number, each in enumerate(wanted)]
    model.advance(jobs[:2])
    mixed = [frame(produced) for produced in finished(model, jobs)]
    assert [each.tobytes() for each in mixed] == [each.tobytes() for each in alone]
    assert set(network.batches) == {4}


def test_eight_rows_take_two_padded_forwards_and_one_otherwise() -> None:
    for pad_to, batches in ((4, [4, 4]), (3, [3, 3, 3]), (0, [8])):
        network, model = world(pad_to=pad_to)
        model.advance([model.begin(model.open(Denoising(seed=seed)), acting(seed)) for seed in range(8)])
        assert network.batches == batches


def test_without_padding_company_changes_no_more_than_rounding() -> None:
    _, model = world()
    alone = [shown(model, model.open(Denoising(seed=seed, steps=2 + seed)), acting(seed)) for seed in range(5)]
    jobs = [model.begin(model.open(Denoising(seed=seed, steps=2 + seed)), acting(seed)) for seed in range(5)]
    for one, other in zip(alone, finished(model, jobs), strict=True):
        assert np.allclose(one, frame(other), atol=1e-5)


@pytest.mark.parametrize("takes", ["flow", "edm"])
def test_a_row_in_the_other_parametrisation_is_put_into_the_networks_own(takes: Parametrisation) -> None:
    """What it is asked with, against the formulas, for both samplers in one call."""
    network, model = world(takes)
    asked: list[tuple[Tensor, Tensor]] = []
    network.denoise = lambda x, t, cond, contents: asked.append((x, t)) or torch.zeros_like(x)
    flow, edm = (model.begin(model.open(Denoising(seed=5, sampler=name, steps=4)), acting(0)) for name in ("flow", "edm"))
    noise = flow.place.x / flow.route.levels[0]
    model.advance([flow, edm])
    ((x, t),) = asked
    t_flow, sigma_edm = flow.route.levels[0], 80.0
    expected = [t_flow, sigma_edm / (1 + sigma_edm)] if takes == "flow" else [t_flow / (1 - t_flow), sigma_edm]
    assert listed(t) == pytest.approx(expected, rel=1e-5)
    assert torch.allclose(x[0], noise * expected[0], rtol=1e-4)
    assert torch.allclose(x[1], noise * expected[1], rtol=1e-4)


def test_steps_and_sampler_come_from_the_input_the_request_the_deployment_or_the_model() -> None:
    _, model = world(steps=6, sampler="edm", shift=2.0)
    plain, wanted = model.open(Denoising()), model.open(Denoising(steps=2, sampler="flow"))
    assert (model.begin(plain, acting(0)).steps, model.begin(wanted, acting(0)).steps) == (6, 2)
    assert model.begin(wanted, acting(0, steps=9)).steps == 9
    assert model.begin(plain, acting(0)).route.levels[0] == 80.0
    assert model.begin(wanted, acting(0)).route.levels == (1.0, pytest.approx(2 / 3), 0.0)
    assert world()[1].begin(plain, acting(0)).steps == 3


@pytest.mark.parametrize("steps", [0, -1, 10**6])
def test_steps_out_of_range_are_refused_with_both(steps: int) -> None:
    _, model = world()
    with pytest.raises(InvalidInput, match=f"steps: expected 1 to 1000, got {steps}"):
        model.open(Denoising(steps=steps))
    with pytest.raises(InvalidInput, match=f"steps: expected 1 to 1000, got {steps}"):
        model.begin(model.open(Denoising()), acting(0, steps=steps))


def test_the_same_input_and_seed_give_the_same_at_any_time_but_its_context() -> None:
    network = TinyWorld()
    honest = network.finish
    network.finish = lambda content, cond, x: honest(content, cond, x)._replace(content=content)
    model = NativeModel(network, NativeOptions(pad_to=1))
    state = model.open(Denoising(seed=1))
    assert len({shown(model, state, acting(0, seed=9)).tobytes() for _ in range(3)}) == 1
    assert len({shown(model, state, acting(0)).tobytes() for _ in range(3)}) == 3
    again = model.open(Denoising(seed=1))
    assert shown(model, again, acting(0, seed=9)).tobytes() == shown(model, state, acting(0, seed=9)).tobytes()


def test_seed_and_session_make_the_noise() -> None:
    _, model = world()
    wanted = [Denoising(seed=1), Denoising(seed=2), Denoising(seed=1, session="a"), Denoising(seed=1)]
    frames = [shown(model, model.open(each), acting(0)).tobytes() for each in wanted]
    assert frames[0] == frames[3]
    assert len(set(frames)) == 3


def test_an_abandoned_job_leaves_its_session_as_it_was() -> None:
    _, model = world()
    state, other = model.open(Denoising()), model.open(Denoising())
    rollout(model, state, [0, 1])
    rollout(model, other, [0, 1])
    before, nbytes = model.snapshot(state), model.state_bytes
    job = model.begin(state, acting(7))
    model.advance([job])
    model.abandon(job)
    assert (model.snapshot(state), model.state_bytes) == (before, nbytes)
    assert rollout(model, state, [2, 3]) == rollout(model, other, [2, 3])


def test_an_update_counts_from_the_next_step_on_and_a_wrong_one_changes_nothing() -> None:
    _, model = world()

    def turned(at_step: int, payload: Payload) -> bytes:
        job = model.begin(model.open(Denoising(steps=4)), acting(0))
        for _ in range(at_step):
            model.advance([job])
        model.update(job, payload)
        return frame(finished(model, [job])[0]).tobytes()

    plain, other = turned(3, acting(0)), shown(model, model.open(Denoising(steps=4)), acting(1)).tobytes()
    assert turned(0, acting(1)) == other
    assert len({plain, other, turned(1, acting(1)), turned(3, acting(1))}) == 4
    with pytest.raises(InvalidInput, match="action: expected float32"):
        turned(2, Payload())


def test_a_fork_goes_on_alike_with_its_seed_and_otherwise_with_another() -> None:
    _, model = world()
    state = model.open(Denoising(seed=1))
    rollout(model, state, [0, 1, 2])
    held = model.state_bytes
    twin, sibling = model.fork(state, Denoising(seed=1)), model.fork(state, Denoising(seed=2))
    assert model.state_bytes == held
    first, same, another = (rollout(model, each, [3, 4, 5, 6]) for each in (state, twin, sibling))
    assert first == same
    assert not set(first) & set(another)
    assert model.state_bytes > held
    untouched = model.open(Denoising(seed=1))
    assert rollout(model, untouched, [0, 1, 2, 3, 4, 5, 6])[3:] == first


def test_a_fork_that_nobody_goes_on_with_is_a_place_to_come_back_to() -> None:
    _, model = world()
    state = model.open(Denoising(seed=1))
    rollout(model, state, [0])
    kept = model.fork(state, Denoising(seed=1))
    first = rollout(model, state, [1, 2])
    model.close(state)
    assert rollout(model, model.fork(kept, Denoising(seed=1)), [1, 2]) == first


def test_a_snapshot_goes_on_in_another_process_with_more_threads() -> None:
    _, model = world(pad_to=2)
    state = model.open(Denoising(seed=1))
    rollout(model, state, [0, 1, 2, 3])
    snapshot = msgspec.msgpack.encode(model.snapshot(state)).hex()
    script = f"""
import msgspec
import torch
from fakes.tiny_world import TinyWorldModel, acting, frame
from engines.parameters import Denoising
from engines.payloads import Payload
from pathlib import Path
torch.set_num_threads(2)
model = TinyWorldModel.load(Path(), {{"pad_to": 2}})
state = model.restore(Denoising(seed=1), msgspec.msgpack.decode(bytes.fromhex("{snapshot}"), type=Payload))
for action in (4, 5):
    job = model.begin(state, acting(action))
    while job.calls_left:
        (produced,) = model.advance([job])
    print(frame(produced).tobytes().hex())
"""
    same_modules = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, "-c", script], env=same_modules, capture_output=True, text=True, check=True).stdout
    assert [bytes.fromhex(line) for line in told.split()] == rollout(model, state, [4, 5])


def test_the_budget_refuses_what_does_not_fit_and_the_others_go_on() -> None:
    model = NativeModel(Hoarder(), NativeOptions(steps=1, state_mb=1))
    first, other = model.open(Denoising()), model.open(Denoising())
    finished(model, [model.begin(first, acting(0))])
    full, refused = model.advance([model.begin(other, acting(0)), model.begin(first, acting(0))])
    assert full == []
    assert isinstance(refused, NoRoom)
    expected = "state_mb: expected at most 1048576 bytes in the states of all sessions of this model, got 1048600"
    assert str(refused).startswith(expected)
    assert model.state_bytes <= 1 << 20
    model.close(first)
    assert finished(model, [model.begin(other, acting(0))]) == [[]]


def test_frames_of_other_shapes_share_no_call() -> None:
    _, model = world()
    narrow, wide = (model.begin(model.open(Denoising()), acting(0, wide=wide)) for wide in (0, 1))
    assert narrow.key != wide.key
    assert narrow.key == model.begin(model.open(Denoising(steps=7, sampler="edm")), acting(3)).key
    assert frame(finished(model, [wide])[0]).shape == (2, 4, 8)


class Pinned:
    """Holds a part of the frame to what is given, as real-time chunking does. With gradient: by what the network makes of x."""

    def __init__(self, with_gradient: bool) -> None:
        self.with_gradient = with_gradient
        self.given = torch.full(FRAME, 0.5)
        self.pulled: list[Tensor] = []
        self.asked: list[tuple[Tensor, float, Tensor]] = []

    def vector(self, x: Tensor, t: float, clean: Tensor) -> Tensor:
        return self.given - clean

    def guided(self, x: Tensor, t: float, clean: Tensor, pulled: Tensor | None) -> Tensor:
        self.asked.append((x, t, clean))
        if pulled is not None:
            self.pulled.append(pulled)
            return clean + pulled
        return torch.cat([self.given[:1], clean[1:]])


def test_a_guide_changes_its_own_row_beside_rows_without_one() -> None:
    network, model = world(pad_to=2)
    plain = shown(model, model.open(Denoising(seed=1)), acting(0))
    free = model.begin(model.open(Denoising(seed=1)), acting(0))
    network.guide = Pinned(with_gradient=False)
    held = model.begin(model.open(Denoising(seed=1)), acting(0))
    assert held.key == free.key
    first, second = (frame(produced) for produced in finished(model, [free, held]))
    assert first.tobytes() == plain.tobytes()
    assert np.array_equal(second[:1], np.full((1, 4, 4), 0.5, np.float32))


def test_a_guide_gets_the_vector_jacobian_product_of_its_own_row() -> None:
    network, model = world()
    network.guide = guide = Pinned(with_gradient=True)
    jobs = [model.begin(model.open(Denoising(seed=seed)), acting(seed)) for seed in (1, 2)]
    model.advance(jobs)
    network.batches.clear()
    for at, job in enumerate(jobs):
        x, t, clean = guide.asked[at]
        shift = torch.sin(torch.arange(float(x.numel()))).reshape(x.shape) * 1e-2

        def asked(values: Tensor, job: Job = job, t: float = t) -> Tensor:
            return network.denoise(values[None], torch.tensor([t]), [job.cond], [job.session.content])[0]

        along = ((asked(x + shift) - asked(x - shift)) / 2 * (guide.given - clean)).sum()
        assert float((guide.pulled[at] * shift).sum()) == pytest.approx(float(along), rel=2e-3)
    network.guide = None
    assert model.begin(model.open(Denoising()), acting(0)).key != jobs[0].key
    assert not torch.is_grad_enabled() or finished(model, jobs)  # and they go on to their ends


def test_inputs_are_let_go() -> None:
    _, model = world()
    action = np.ones(4, np.float32)
    job = model.begin(model.open(Denoising()), Payload(arrays={"action": Array.of(action)}))
    action[:] = np.nan
    assert np.isfinite(frame(finished(model, [job])[0])).all()


def test_warming_up_leaves_no_session() -> None:
    network, model = world()
    held = model.state_bytes
    model.warm_up()
    assert (network.batches, model.state_bytes) == ([1, 1, 1], held)


def test_options_out_of_range_are_named() -> None:
    for name, value in (("steps", 0), ("sampler", "ddim"), ("shift", 0.0), ("pad_to", -1), ("state_mb", 0), ("solver", "rk4")):
        with pytest.raises(msgspec.ValidationError, match=name):
            TinyWorldModel.load(Path(), {name: value})
