"""Requests come, wait, fail, are aborted and lose their gateway at random; afterwards nothing is left of any."""

import asyncio
import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from engines.messages.to_gateway import Aborted, Emit, Failed
from engines.messages.to_worker import Abort, ServiceClass
from engines.worker.spec import BatchSpec
from fakes.gateway import FakeGateway
from fakes.worker_bench import Bench

TEXTS = ("a", "b", "many", "silent", "raise", "invalid", "keyless", "swallow", "")
SOURCES = {"echo": (), "joined": (), "mixed": ("echo", "joined"), "paired": ("echo", "joined")}


class Life:
    """Some requests of one gateway, from their submission to their end, whatever that is."""

    def __init__(self, bench: Bench, gateway: FakeGateway, draw: random.Random, requests: int) -> None:
        self._bench = bench
        self._gateway = gateway
        self._draw = draw
        self._stages = {f"r{number}": draw.choice(tuple(SOURCES)) for number in range(requests)}

    async def live(self) -> None:
        draw = self._draw
        for name in self._stages:
            self._submit(name)
        for name in draw.choices(list(self._stages), k=len(self._stages) * 5):
            self._act(name)
            await asyncio.sleep(0)
        for name, stage in self._stages.items():
            self._gateway.grant(name, 1000, stage)
            for source in SOURCES[stage] or ("",):
                self._gateway.push(name, stage=stage, source=source, final=True)
            if draw.random() < 0.2:
                self._gateway.send(Abort(name))

    async def end(self) -> None:
        """An Abort for what has ended already is acknowledged too, so that every request gets one in the end."""
        for name in self._stages:
            self._gateway.send(Abort(name))
        for name in self._stages:
            await self._gateway.next(Aborted, lambda aborted, name=name: aborted.request_id == name)

    def check(self) -> None:
        """Chunks are numbered without a gap, and there is one last word at most, after which nothing is said."""
        for name in self._stages:
            words = [message for message in self._gateway.unread if name_of(message) == name]
            chunks = [word.chunk for word in words if isinstance(word, Emit)]
            assert [chunk.seq for chunk in chunks] == list(range(len(chunks)))
            assert not any(is_last(word) for word in words[:-1])

    def _submit(self, name: str) -> None:
        draw, stage = self._draw, self._stages[name]
        self._gateway.submit(
            name,
            stage,
            upstreams=SOURCES[stage],
            window=draw.choice((1, 64)),
            wait_ms=draw.choice((0.0, 5.0, 60_000.0)),
            service_class=draw.choice(tuple(ServiceClass)),
            connector=draw.choice(("inline", "elsewhere")),
        )

    def _act(self, name: str) -> None:
        draw, stage = self._draw, self._stages[name]
        action, source = draw.random(), draw.choice(SOURCES[stage] or ("",))
        if action < 0.4:
            self._gateway.push(name, draw.choice(TEXTS), stage=stage, source=source, key=draw.choice(("", "x")))
        elif action < 0.6:
            offered = self._bench.remote.offer(draw.choice(("a", "never", "many")))
            if draw.random() < 0.1:
                self._bench.remote.lose(offered)
            self._gateway.hand(name, offered, stage=stage, source=source)
        elif action < 0.85:
            self._gateway.grant(name, draw.choice((1, 3)), stage)
        else:
            self._gateway.send(Abort(name))


def name_of(message: object) -> str | None:
    match message:
        case Emit(chunk):
            return chunk.request_id
        case Failed():
            return message.request_id
        case _:
            return None


def is_last(message: object) -> bool:
    return isinstance(message, Failed) or (isinstance(message, Emit) and message.chunk.final)


async def churn(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    bench = Bench(folder)
    bench.slots = 2
    bench.batch = BatchSpec(max=draw.choice((1, 3, 8)), min=1)
    bench.remote.held = {"never"}
    one, two, lost = [await bench.gateway(server) for server in ("one", "two", "lost")]
    lives = [Life(bench, gateway, draw, requests=8) for gateway in (one, two, lost)]
    await asyncio.gather(*(life.live() for life in lives))
    await lost.close()
    for life in lives[:2]:
        await life.end()
        life.check()
    while bench.model.closed < bench.model.opened:
        await bench.model.closes()
    await bench.remote.fetches(0)
    report = await (await bench.gateway()).idle()
    assert all(stage.queued == 0 for stage in report.stages)
    assert bench.remote.keys == []
    await bench.stop()


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_nothing_is_left_after_churn(seed: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(churn(Path(folder), seed))
