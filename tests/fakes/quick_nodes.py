"""Whole servers over one store whose answers are quick and say for whom they are: see fakes/repeating.py.

async with quick_nodes(folder, redis.url, nodes=2) as nodes: ... nodes.url, await nodes.told()
"""

import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from fakes.served import Served, serving
from realtime.front.control import ask, control_path
from realtime.front.messages import Look, Told

DEPLOYMENT = """
pipeline: voice
store: {{url: "{store}", lease_s: {lease_s}, settle_s: {lease_s}}}
workers:
  all: {{stages: [vad, turn, asr, thinker, narrator]}}
stages:
  vad: {{model: "fakes.fast_voice:Finished", directory: "{folder}", slots: 4000}}
  turn: {{model: "fakes.fast_voice:Finished", directory: "{folder}", slots: 4000}}
  asr: {{model: "fakes.fast_voice:Hearing", directory: "{folder}", slots: 4000}}
  thinker: {{model: "fakes.repeating:Repeating", directory: "{folder}", slots: 4000, options: {{times: {times}}}}}
  narrator: {{model: "fakes.fast_voice:Tones", directory: "{folder}", slots: 4000}}
voices:
  tone: {{output: narration}}
session: {{maximum_sessions: {sessions}}}
admission: {{state_mb: 1000000, longest_queue: 1000}}
server: {{log_level: info}}
"""


class QuickNodes:
    def __init__(self, served: Served) -> None:
        self.served = served
        self.url = served.url

    async def told(self) -> Mapping[str, Told]:
        async for answer in ask(control_path(int(self.url.rpartition(":")[2])), Look()):
            return {node.node: node for node in answer.nodes}
        raise AssertionError("the front did not answer")

    async def kill(self, node: str) -> None:
        os.kill((await self.told())[node].pid, signal.SIGKILL)


@asynccontextmanager
async def quick_nodes(
    folder: Path,
    store: str,
    *,
    nodes: int = 1,
    sessions: int = 1000,
    times: int = 100,
    lease_s: float = 10.0,
    ahead_s: float = 0.0,
) -> AsyncGenerator[QuickNodes]:
    """Ready. `sessions`: of each node; an answer has `times` words, one each 20 ms. `nodes` 1: without a front.
    `ahead_s`: its wall clock."""
    folder.mkdir()  # noqa: ASYNC240 (before anything runs)
    file = folder / "quick.yaml"
    file.write_text(DEPLOYMENT.format(folder=folder, store=store, sessions=sessions, times=times, lease_s=lease_s))
    async with serving(file, ahead_s)("--nodes", str(nodes)) as served:
        await served.until(r"ready after \d")
        yield QuickNodes(served)
