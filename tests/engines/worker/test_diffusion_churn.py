"""Jobs come, wait, are updated, fail, are shed and aborted, lose their credit and their gateway at random, under each scheduler:
afterwards every request has ended, every job was freed once, and nothing is left of any."""

import asyncio
import itertools
import random
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from engines.connectors.contents import Inline
from engines.diffusion.scheduling import Decision
from engines.diffusion.scheduling.steps import Steps
from engines.diffusion.scheduling.waves import Waves
from engines.messages.to_gateway import Aborted
from engines.messages.to_worker import Abort, ServiceClass
from engines.models import Produced
from engines.models.diffusion import DEADLINE_MS, UPDATE
from engines.parameters import Denoising, Parameters
from engines.payloads import Payload, Scalar
from fakes.gateway import FakeGateway
from fakes.step_counter import Account, Count, StepCounter
from fakes.worker_bench import Bench

TEXTS = ("a", "b", "c", "d", "raise", "invalid", "refuse")
STAGE = "steps"


class Accounted(StepCounter):
    """Knows which jobs are under way, and what is done with those that are not."""

    def __init__(self) -> None:
        super().__init__()
        self.open_states = 0
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self.live: set[Count] = set()
        self.faults: list[str] = []

    async def all_closed(self) -> None:
        """Who leaves while others compute is closed when the thread is free, a little after its end."""
        while self.open_states:
            self._changed.clear()
            await self._changed.wait()

    def open(self, parameters: Parameters) -> Account:
        self.open_states += 1
        return super().open(parameters)

    def begin(self, state: Account, payload: Payload) -> Count:
        if any(job.account is state for job in self.live):
            self.faults.append("a second job of one request")
        job = super().begin(state, payload)
        self.live.add(job)
        return job

    def advance(self, jobs: Sequence[Count]) -> list[list[Produced] | Exception]:
        if not set(jobs) <= self.live or len({job.key for job in jobs}) > 1:
            self.faults.append("a call of jobs that are not there, or have no key in common")
        answers = super().advance(jobs)
        self.live -= {job for job in jobs if job.calls_left == 0}
        return answers

    def abandon(self, job: Count) -> None:
        if job not in self.live:
            self.faults.append("abandoned, and not there")
        self.live.discard(job)

    def close(self, state: Account) -> None:
        self.open_states -= 1
        if any(job.account is state for job in self.live):
            self.faults.append("closed before its job was freed")
        self._loop.call_soon_threadsafe(self._changed.set)


class Life:
    """Some requests of one gateway, from their submission to their end, whatever that is."""

    def __init__(self, gateway: FakeGateway, draw: random.Random, requests: int) -> None:
        self._gateway = gateway
        self._draw = draw
        self._aborted: set[str] = set()
        self._names = [f"r{number}" for number in range(requests)]

    async def live(self) -> None:
        draw = self._draw
        for name in self._names:
            self._gateway.submit(
                name,
                STAGE,
                parameters=Denoising(),
                window=draw.choice((0, 1, 64)),
                wait_ms=draw.choice((0.0, 5.0, 60_000.0)),
                service_class=draw.choice(tuple(ServiceClass)),
                deadline_ms=draw.choice((None, None, 2.0, 1000.0)),
            )
        for name in draw.choices(self._names, k=len(self._names) * 5):
            self._act(name)
            await asyncio.sleep(0)
        for name in self._names:
            self._gateway.grant(name, 1000, STAGE)
            self._gateway.push(name, stage=STAGE, final=True)
            if draw.random() < 0.2:
                self._abort(name)

    async def end(self) -> None:
        """Nobody is forgotten: each has its last word, after chunks without a gap, or its abort is acknowledged."""
        for name in self._names:
            if name in self._aborted:
                await self._gateway.next(Aborted, lambda aborted, name=name: aborted.request_id == name)
            else:
                await self._last_word(name)

    async def _last_word(self, name: str) -> None:
        for seq in itertools.count():
            try:
                chunk = await self._gateway.chunk(name)
            except AssertionError:  # it has failed
                return
            assert chunk.seq == seq
            if chunk.final:
                return

    def _act(self, name: str) -> None:
        draw = self._draw
        action = draw.random()
        if action < 0.6:
            attributes: dict[str, Scalar] = {
                "steps": draw.choice((1, 3, 6)),
                "rows": draw.choice((1, 1, 3)),
                "key": draw.choice("xy"),
                "previews": draw.random() < 0.3,
            }
            if draw.random() < 0.2:
                attributes[UPDATE] = True
            if draw.random() < 0.2:
                attributes[DEADLINE_MS] = draw.choice((0, 1, 50))
            self._gateway.hand(name, Inline(Payload(draw.choice(TEXTS), attributes=attributes)), stage=STAGE)
        elif action < 0.9:
            self._gateway.grant(name, draw.choice((1, 3)), STAGE)
        elif draw.random() < 0.3:
            self._abort(name)

    def _abort(self, name: str) -> None:
        if name not in self._aborted:
            self._aborted.add(name)
            self._gateway.send(Abort(name))


async def churn(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    bench = Bench(folder)
    bench.slots = draw.choice((2, 6))
    model = bench.steppers["steps"] = Accounted()
    limit = draw.choice((1, 4, 8))
    bench.scheduler = draw.choice((Steps(limit), Waves(limit, 0.004, 0.001)))
    one, two, lost = [await bench.gateway(server) for server in ("one", "two", "lost")]
    lives = [Life(gateway, draw, requests=8) for gateway in (one, two, lost)]
    await asyncio.gather(*(life.live() for life in lives))
    await lost.close()
    for life in lives[:2]:
        await life.end()
    report = await (await bench.gateway()).idle()
    assert all(stage.queued == 0 for stage in report.stages)
    await model.all_closed()
    assert (model.live, model.faults) == (set(), [])
    assert bench.scheduler.choose(time.monotonic()) == Decision((), (), None)
    await bench.stop()


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_nothing_is_left_after_churn_of_jobs(seed: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(churn(Path(folder), seed))
