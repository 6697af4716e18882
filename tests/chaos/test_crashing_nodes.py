"""Nodes crash, are cut off and come back while people come, break off, return and leave; now and then the store loses all.
Whoever talks is counted at each change by somebody who does not ask the store."""

import asyncio
import random
from pathlib import Path

import pytest

from fakes.faulty_store import Fault
from fakes.real_house import House, Person, RealNode, house
from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server
from sessions.admission.node import Leases
from sessions.admission.settings import AdmissionSettings

LEASES = Leases(lease_s=0.6, return_s=0.3, grace_s=0.8)
SETTLE_S = 0.9
"""Longer than a lease, so that a node that was cut off meanwhile is mute."""
STEP_S = 0.005
CUT_OFF_S = (0.05, 1.5)


class Chaos:
    def __init__(self, here: House, server: RedisServer, seed: int) -> None:
        self._here = here
        self._server = server
        self._draw = random.Random(seed)
        self._people: list[Person] = []
        self._number = 0
        self.steps = {self._come: 50, self._leave: 8, self._break_off: 12, self._lose_words: 2, self._cut_off: 1, self._crash: 1}

    async def run(self, steps: int, flushes: int) -> None:
        flushed = set(self._draw.sample(range(steps), flushes))
        for step in range(steps):
            if step in flushed:
                await self._flush()
            await self._draw.choices(list(self.steps), list(self.steps.values()))[0]()
            self._here.observe()
            await asyncio.sleep(STEP_S)  # leases run by the real time
            self._people = [person for person in self._people if not person.is_gone]

    async def _come(self) -> None:
        self._number += 1
        node = self._draw.choice(self._here.nodes)
        self._people.append(self._here.comes(f"s{self._number}", node, wait_s=self._draw.choice((0.0, 2.0))))

    async def _leave(self) -> None:
        if self._people:
            self._draw.choice(self._people).leaves.set()

    async def _break_off(self) -> None:
        if self._people:
            self._draw.choice(self._people).broken_off.set()

    async def _lose_words(self) -> None:
        line = self._node().line
        for word in ("ask", "release", "keep", "renew", "announce"):
            line.next[word].append(self._draw.choice((Fault.LOST_QUESTION, Fault.LOST_ANSWER)))

    async def _cut_off(self) -> None:
        line = self._node().line
        line.down = True
        asyncio.get_running_loop().call_later(self._draw.uniform(*CUT_OFF_S), setattr, line, "down", False)

    async def _crash(self) -> None:
        await self._here.crash(self._node())
        await self._here.add_node()

    async def _flush(self) -> None:
        wire = one_server(("127.0.0.1", self._server.port))
        await wire.ask("FLUSHALL")
        await wire.close()

    def _node(self) -> RealNode:
        return self._draw.choice(self._here.nodes)


async def lives_through(folder: Path, seed: int, *, nodes: int, seats: int, steps: int, flushes: int) -> None:
    settings = AdmissionSettings(place_s=0.5, longest_queue=20)
    async with (
        running_redis(folder) as server,
        house(server.url, nodes=nodes, seats=seats, leases=LEASES, settle_s=SETTLE_S, settings=settings) as here,
    ):
        await Chaos(here, server, seed).run(steps, flushes)
        for node in here.nodes:
            here.comes(f"{node.name}-calm", node, patient=True)
        await here.until(lambda: len(here.talking()) == seats)  # no seat is lost
        assert here.faults == []


@pytest.mark.parametrize("seed", [1])
async def test_nobody_is_let_in_beyond_what_there_is(tmp_path: Path, seed: int) -> None:
    await lives_through(tmp_path, seed, nodes=8, seats=6, steps=400, flushes=1)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
async def test_nobody_is_let_in_beyond_what_there_is_for_a_long_time(tmp_path: Path, seed: int) -> None:
    await lives_through(tmp_path, seed, nodes=32, seats=24, steps=3000, flushes=4)
