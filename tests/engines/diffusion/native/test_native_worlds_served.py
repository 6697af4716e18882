"""Tiny worlds behind the DIFFUSION engine and the scheduler that serves: rollouts share forwards, as a gateway sees them."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from engines.chunks import Chunk
from engines.connectors.contents import Inline
from engines.diffusion.native.model import NativeModel
from engines.diffusion.scheduling.shares import RESERVED
from engines.diffusion.scheduling.steps import Steps
from engines.messages.to_gateway import Aborted, ErrorKind, Failed
from engines.messages.to_worker import Abort
from engines.models.diffusion import UPDATE
from engines.models.options import NativeOptions
from engines.parameters import Denoising
from engines.payloads import Payload
from fakes.gateway import FakeGateway, payload
from fakes.tiny_world import Hoarder, TinyWorld, acting
from fakes.worker_bench import Bench


class Served:
    def __init__(self, folder: Path, network: TinyWorld, options: NativeOptions) -> None:
        self.network = network
        self.model = NativeModel(network, options)
        self.bench = Bench(folder)
        self.bench.steppers["steps"] = self.model
        self.bench.scheduler = Steps(8, RESERVED)

    def begin(self, gateway: FakeGateway, name: str, wanted: Denoising) -> None:
        gateway.submit(name, "steps", parameters=wanted)

    def act(self, gateway: FakeGateway, name: str, actions: Sequence[int], *, final: bool = False) -> None:
        gateway.hand(name, *(Inline(acting(action)) for action in actions), stage="steps", final=final)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    made = Served(tmp_path, TinyWorld(), NativeOptions(pad_to=4))
    yield made
    await made.bench.stop()


@pytest.fixture
async def hoarding(tmp_path: Path) -> AsyncGenerator[Served, None]:
    made = Served(tmp_path, Hoarder(), NativeOptions(steps=1, state_mb=1))
    yield made
    await made.bench.stop()


async def rollouts(served: Served, gateway: FakeGateway, names: Sequence[str]) -> dict[str, list[bytes]]:
    for name in names:
        seed = int(name[0])
        served.begin(gateway, name, Denoising(seed=seed, steps=2 + seed % 3, sampler="edm" if seed % 2 else None))
    for name in names:
        served.act(gateway, name, range(6), final=True)
    return {name: frames(await gateway.chunks(name)) for name in names}


def frames(chunks: Sequence[Chunk]) -> list[bytes]:
    arrays = [payload(chunk).arrays for chunk in chunks]
    return [bytes(each["frame"].data) for each in arrays if "frame" in each]


async def test_rollouts_are_equal_alone_and_with_seven_others(served: Served) -> None:
    gateway = await served.bench.gateway()
    together = await rollouts(served, gateway, [f"{number} together" for number in range(8)])
    shared = len(served.network.batches)
    alone = {f"{number} together": await rollouts(served, gateway, [f"{number} alone"]) for number in (0, 2, 4, 6)}
    for name, found in alone.items():
        assert together[name] == next(iter(found.values()))
        assert len(set(together[name])) == 6
    steps = sum(6 * (2 + number % 3) for number in range(8))
    assert steps / 4 <= shared < steps * 0.6


async def test_an_aborted_rollout_costs_the_others_nothing(served: Served) -> None:
    gateway = await served.bench.gateway()
    held = served.model.state_bytes
    alone = await rollouts(served, gateway, ["1 alone"])
    served.begin(gateway, "leaver", Denoising(seed=5, steps=1000))
    served.act(gateway, "leaver", [0, 1])
    served.begin(gateway, "1 stays", Denoising(seed=1, steps=3, sampler="edm"))
    served.act(gateway, "1 stays", range(3))
    await gateway.chunk("1 stays")
    gateway.send(Abort("leaver"))
    await gateway.next(Aborted)
    served.act(gateway, "1 stays", range(3, 6), final=True)
    assert frames(await gateway.chunks("1 stays")) == alone["1 alone"][1:]
    await gateway.idle()
    assert served.model.state_bytes == held


async def test_an_action_that_changes_under_way_is_answered(served: Served) -> None:
    gateway = await served.bench.gateway()
    served.begin(gateway, "r", Denoising(steps=300))
    served.act(gateway, "r", [0])
    changed = acting(3)
    gateway.hand("r", Inline(Payload(arrays=changed.arrays, attributes={UPDATE: True})), stage="steps", final=True)
    chunks = await gateway.chunks("r")
    assert [payload(chunk).attributes.get(UPDATE) for chunk in chunks][:1] == [True]
    served.begin(gateway, "plain", Denoising(steps=300))
    served.act(gateway, "plain", [0], final=True)
    assert frames(chunks) != frames(await gateway.chunks("plain"))


async def test_what_finds_no_room_is_answered_as_overloaded(hoarding: Served) -> None:
    gateway = await hoarding.bench.gateway()
    for name in ("first", "second"):
        hoarding.begin(gateway, name, Denoising())
    hoarding.act(gateway, "first", range(10))
    failed = await gateway.next(Failed)
    assert (failed.request_id, failed.kind) == ("first", ErrorKind.OVERLOADED)
    assert failed.message.startswith("state_mb: expected at most 1048576 bytes")
    hoarding.act(gateway, "second", range(2), final=True)
    assert len(await gateway.chunks("second")) == 1
