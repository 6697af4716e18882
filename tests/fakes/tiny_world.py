"""A world of random weights, a few thousand: each action leads to a frame, drawn by what was seen before."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.conformance.samples import GenerationSamples
from engines.diffusion.native import Description, Finished, Guide, Start
from engines.diffusion.native.context import RollingContext
from engines.diffusion.native.key_values import KeyValues
from engines.diffusion.native.levels import Levels, Parametrisation
from engines.diffusion.native.model import NativeModel
from engines.diffusion.native.noise import Source
from engines.models import InvalidInput, Produced
from engines.models.options import NativeOptions
from engines.parameters import Denoising
from engines.payloads import Array, Payload
from engines.pipeline import ExecutionType, Output, Pipeline, Stage

FRAME, ACTION, TOKEN = (2, 4, 4), 4, 6
LENGTH, PAGE, WINDOW = 3, 4, 8
HIDDEN = 24
FRAMES_PER_S = 10


class Seen(msgspec.Struct, frozen=True):
    frames: RollingContext
    tokens: KeyValues


class Asked(NamedTuple):
    action: Tensor
    context: Tensor


class TinyWorldOptions(NativeOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    takes: Parametrisation = "flow"


class TinyWorld:
    """A step model. Takes `action` float32 [4]; attributes `steps`, `seed` and `wide` (a frame of twice the width, which the
    world does not remember). Emits `frame` float32.

    `batches` are the numbers of rows that it was asked for; `guide` is every job's.
    """

    device = torch.device("cpu")

    def __init__(self, takes: Parametrisation = "flow", length: int = LENGTH) -> None:
        self.description = Description("tiny_world 1", "frames", FRAME, takes, steps=3, levels=Levels(takes))
        self.batches: list[int] = []
        self.guide: Guide | None = None
        self._length = length
        pixels = int(np.prod(FRAME))
        self._inner = nn.Linear(pixels * (1 + length) + ACTION + TOKEN + 2, HIDDEN)
        self._outer = nn.Linear(HIDDEN, pixels)
        for number, weight in enumerate((*self._inner.parameters(), *self._outer.parameters())):
            weight.data = Source(7, "weights", number).normal(0, tuple(weight.shape)) * 0.3
            weight.requires_grad_(False)

    def empty(self) -> Seen:
        return Seen(RollingContext.empty(self._length, FRAME), KeyValues.empty(PAGE, WINDOW, (TOKEN,)))

    def prepare(self, content: Seen, payload: Payload) -> Start[Asked]:
        asked = Asked(_action(payload), content.frames.padded())
        wide = bool(payload.attributes.get("wide", False))
        shape = (FRAME[0], FRAME[1], FRAME[2] * (2 if wide else 1))
        return Start(asked, shape, None, _whole(payload, "steps"), _whole(payload, "seed"), self.guide)

    def update(self, content: Seen, cond: Asked, payload: Payload) -> Asked:
        return cond._replace(action=_action(payload))

    def denoise(self, x: Tensor, t: Tensor, cond: Sequence[Asked], contents: Sequence[Seen]) -> Tensor:
        self.batches.append(len(x))
        given = torch.stack(
            [
                torch.cat([asked.action, asked.context.flatten(), _memory(seen)])
                for asked, seen in zip(cond, contents, strict=True)
            ]
        )
        return torch.cat([self._look(part, t, given) for part in torch.split(x, FRAME[2], 3)], 3)

    def finish(self, content: Seen, cond: Asked, x: Tensor) -> Finished[Seen]:
        frames, tokens = content.frames, content.tokens
        produced = Produced(Payload(arrays={"frame": Array.of(x.numpy())}), frames.seen / FRAMES_PER_S, units=1)
        if x.shape != FRAME:
            return Finished([produced], content)
        marks = torch.cat([cond.action, x.mean((1, 2))])
        return Finished([produced], Seen(frames.grown(x), tokens.appended(torch.stack([marks, -marks, marks / 2]))))

    def warm_ups(self) -> Sequence[Payload]:
        return [acting(0)]

    def _look(self, x: Tensor, t: Tensor, given: Tensor) -> Tensor:
        """`x` float32 [n, *FRAME]."""
        seen = x.flatten(1)
        if self.description.takes == "edm":
            seen = seen / torch.sqrt(1 + t * t)[:, None]
        level = torch.stack([torch.cos(t), torch.log(t + 1e-3) / 4], 1)
        inner = torch.tanh(self._inner(torch.cat([seen, given, level], 1)))
        return torch.tanh(self._outer(inner)).reshape(-1, *FRAME)


class Hoarder(TinyWorld):
    """Keeps 256 KiB of each frame."""

    def empty(self) -> Seen:
        return Seen(RollingContext.empty(100, (256, 256)), super().empty().tokens)

    def prepare(self, content: Seen, payload: Payload) -> Start[Asked]:
        return super().prepare(super().empty(), payload)

    def denoise(self, x: Tensor, t: Tensor, cond: Sequence[Asked], contents: Sequence[Seen]) -> Tensor:
        return x * 0

    def finish(self, content: Seen, cond: Asked, x: Tensor) -> Finished[Seen]:
        return Finished([], Seen(content.frames.grown(torch.ones(256, 256)), content.tokens))


class TinyWorldModel(NativeModel[Seen, Asked]):
    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "TinyWorldModel":
        chosen = msgspec.convert(options, TinyWorldOptions)
        return cls(TinyWorld(chosen.takes), chosen)


WORLDS = Pipeline(
    name="fakes.tiny_world:WORLDS",
    stages=(Stage("world", ExecutionType.DIFFUSION, emits="frames", parameters=Denoising),),
    edges=(),
    outputs=(Output("frames", "world"),),
)


def samples(options: Mapping[str, object]) -> GenerationSamples:
    return GenerationSamples(
        parameters=Denoising(seed=1),
        sequences=tuple(tuple(acting(4 * rollout + at, steps=2 + rollout) for at in range(3)) for rollout in range(3)),
        wrong=(
            Payload(),
            Payload(arrays={"action": Array.of(np.zeros(ACTION, np.float64))}),
            Payload(arrays={"action": Array.of(np.full(ACTION, np.nan, np.float32))}),
            acting(0, steps=10**6),
        ),
        refused=(Denoising(steps=0), Denoising(steps=10**6)),
        reseeded=Denoising(seed=2),
        tolerance=0.0 if options.get("pad_to") else 1e-5,
    )


def acting(number: int, **attributes: int) -> Payload:
    action = np.sin(np.arange(1, ACTION + 1, dtype=np.float32) * (number + 1))
    return Payload(arrays={"action": Array.of(action.astype(np.float32))}, attributes=dict(attributes))


def frame(produced: Sequence[Produced]) -> NDArray[np.float32]:
    (only,) = produced
    return cast(NDArray[np.float32], only.payload.arrays["frame"].numpy())


def _memory(seen: Seen) -> Tensor:
    return seen.tokens.entries().sum(0)


def _action(payload: Payload) -> Tensor:
    array = payload.arrays.get("action")
    if array is None or array.dtype != "float32" or array.shape != (ACTION,) or array.data.nbytes != 4 * ACTION:
        raise InvalidInput(f"action: expected float32 of shape ({ACTION},), got {array and (array.dtype, array.shape)}")
    action = torch.as_tensor(cast(NDArray[np.float32], array.numpy()).copy())
    if not bool(torch.isfinite(action).all()):
        raise InvalidInput(f"action: expected finite numbers, got {action}")
    return action


def _whole(payload: Payload, name: str) -> int | None:
    value = payload.attributes.get(name)
    if value is not None and type(value) is not int:
        raise InvalidInput(f"{name}: expected a whole number, got {value!r}")
    return value
