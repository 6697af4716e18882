"""Requests come, fail, are aborted and lose their gateway at random; afterwards nothing is left of any."""

import asyncio
import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from engines.messages.to_gateway import Aborted, Emit, Failed, Report
from engines.messages.to_worker import Abort, Probe
from engines.worker.spec import BatchSpec
from fakes.gateway import FakeGateway
from fakes.worker_bench import Bench

TEXTS = ("a", "b", "many", "silent", "raise", "invalid", "keyless")


async def live(gateway: FakeGateway, draw: random.Random, requests: int) -> dict[str, int]:
    """Drive some requests to their end, whatever that is; how many last words each of them got."""
    names = [f"r{number}" for number in range(requests)]
    for name in names:
        gateway.submit(name, window=draw.choice((1, 64)))
    for name in draw.choices(names, k=requests * 4):
        action = draw.random()
        if action < 0.6:
            gateway.push(name, draw.choice(TEXTS), key=draw.choice(("", "x")))
        elif action < 0.8:
            gateway.grant(name, draw.choice((1, 3)))
        else:
            gateway.send(Abort(name))
        await asyncio.sleep(0)
    for name in names:
        gateway.grant(name, 1000)
        gateway.push(name, final=True)
        if draw.random() < 0.2:
            gateway.send(Abort(name))
    return await last_words(gateway, names)


async def last_words(gateway: FakeGateway, names: list[str]) -> dict[str, int]:
    """An Abort for what has ended already is acknowledged too, so that every request gets one in the end."""
    ends = dict.fromkeys(names, 0)
    for name in names:
        gateway.send(Abort(name))
    for name in names:
        await gateway.next(Aborted, lambda aborted, name=name: aborted.request_id == name)
    for message in gateway.unread:
        if isinstance(message, Failed) or (isinstance(message, Emit) and message.chunk.final):
            ends[message.request_id if isinstance(message, Failed) else message.chunk.request_id] += 1
    return ends


async def churn(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    bench = Bench(folder)
    bench.slots = 6
    bench.batch = BatchSpec(max=draw.choice((1, 3, 8)), min=1)
    one, two, lost = await bench.gateway("one"), await bench.gateway("two"), await bench.gateway("lost")
    lost.submit("r0")
    lost.push("r0", "a")
    async with asyncio.TaskGroup() as group:
        lives = [group.create_task(live(gateway, draw, requests=5)) for gateway in (one, two)]
        group.create_task(lost.close())
    for ends in lives:
        assert all(count <= 1 for count in ends.result().values())
    while bench.model.closed < bench.model.opened:
        await bench.model.closes()
    one.send(Probe())
    report = await one.next(Report)
    assert all((stage.active, stage.queued) == (0, 0) for stage in report.stages)
    assert bench.model.opened == bench.model.closed
    await bench.stop()


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_nothing_is_left_after_churn(seed: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(churn(Path(folder), seed))
