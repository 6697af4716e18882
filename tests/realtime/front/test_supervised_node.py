"""A node's lives: started, given up in the store when it dies, started again, drained, away."""

import asyncio
import os
import random
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engines.launching.supervision import Backoff
from fakes import tiny_node
from fakes.launched import is_there, settings
from realtime.deployment import load
from realtime.front.messages import NodeSpec
from realtime.front.supervised_node import SupervisedNode
from realtime.place import Place
from sessions.store.interface import StoreDown

COMMAND = (sys.executable, "-S", str(Path(tiny_node.__file__)))
AT_ONCE = Backoff(first_s=0.0, limit_s=0.0)


class Ended:
    """What the store is told of a node that has gone; the node had `sessions`."""

    def __init__(self, *sessions: str, down: bool = False) -> None:
        self.gone: list[str] = []
        self.disowned: list[tuple[str, str]] = []
        self._sessions = sessions
        self._down = down

    async def node_gone(self, node: str) -> tuple[str, ...]:
        if self._down:
            raise StoreDown("it is switched off", 1.0)
        self.gone.append(node)
        return self._sessions

    async def disown(self, session_id: str, node: str) -> None:
        self.disowned.append((session_id, node))


class Watched(SupervisedNode):
    """Can be waited for."""

    def __init__(self, folder: Path, store: Ended, drain_s: float, backoff: Backoff) -> None:
        self._told = asyncio.Event()
        spec = NodeSpec(deployment=load(), graph=settings(folder), place=Place(host="box", number=2))
        super().__init__(spec, store, drain_s, self._told.set, backoff=backoff, draw=random.Random(1), command=COMMAND)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():
                self._told.clear()
                await self._told.wait()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.told().pid, number)


@asynccontextmanager
async def running(
    folder: Path, store: Ended | None = None, drain_s: float = 5.0, backoff: Backoff = AT_ONCE
) -> AsyncGenerator[Watched]:
    node = Watched(folder, store or Ended(), drain_s, backoff)
    task = asyncio.create_task(node.run())
    try:
        yield node
    finally:
        task.cancel()
        await asyncio.wait([task])


async def answer(node: SupervisedNode) -> bytes:
    ours, theirs = socket.socketpair()
    with ours, theirs:  # theirs is closed already when the node has it
        node.take(theirs, None)
        return await asyncio.to_thread(_all, ours)


def _all(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as file:
        return file.read()


async def test_a_node_that_is_ready_serves_what_it_is_given(tmp_path: Path) -> None:
    async with running(tmp_path) as node:
        assert not node.is_ready
        await node.until(lambda: node.is_ready)
        told = node.told()
        assert (told.node, told.starts, told.sessions, node.number) == ("box-2", 1, 3, 2)
        assert (await answer(node)).endswith(str(told.pid).encode())
        assert node.load == 4  # what it was given counts until it says how many it has


async def test_a_killed_node_is_given_up_at_once_and_started_again(tmp_path: Path) -> None:
    store = Ended("sess_a", "sess_b")
    async with running(tmp_path, store) as node:
        await node.until(lambda: node.is_ready)
        node.kill()
        await node.until(lambda: node.is_ready and node.starts == 2)
        assert store.gone == ["box-2"] * 2  # before its first start, too: it may have ended with another front
        assert store.disowned == [("sess_a", "box-2"), ("sess_b", "box-2")] * 2


async def test_a_store_that_is_down_keeps_no_node_from_starting_again(tmp_path: Path) -> None:
    async with running(tmp_path, Ended(down=True)) as node:
        await node.until(lambda: node.is_ready)
        node.kill()
        await node.until(lambda: node.is_ready and node.starts == 2)


async def test_a_node_that_cannot_start_is_tried_ever_more_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_NODE", "crash")
    delays: list[int] = []

    class Noted(Backoff, frozen=True):
        def delay_s(self, failures: int, draw: random.Random) -> float:
            delays.append(failures)
            return 0.0

    async with running(tmp_path, backoff=Noted()) as node:
        await node.until(lambda: node.starts == 5)
    assert delays[:4] == [1, 2, 3, 4]


async def test_restart_drains_and_returns_when_it_is_ready_again(tmp_path: Path) -> None:
    async with running(tmp_path) as node:
        await node.until(lambda: node.is_ready)
        restarting = asyncio.create_task(node.restart(20))
        await node.until(lambda: not node.is_ready)
        await restarting
        assert (node.is_ready, node.starts) == (True, 2)


async def test_how_long_it_drains_is_not_counted_as_its_start(tmp_path: Path) -> None:
    async with running(tmp_path) as node:
        await node.until(lambda: node.is_ready)
        before = node.told().pid
        with pytest.raises(TimeoutError):
            await node.restart(ready_limit_s=0.0)
        assert node.told().pid != before
        await node.until(lambda: node.is_ready and node.starts == 2)


async def test_a_node_that_was_stopped_stays_away_until_it_is_restarted(tmp_path: Path) -> None:
    async with running(tmp_path) as node:
        await node.until(lambda: node.is_ready)
        await node.stop()
        assert (node.is_there, node.told().pid, node.starts) == (False, 0, 1)
        with pytest.raises(ConnectionRefusedError):
            await answer(node)
        await node.restart(20)
        assert (node.is_ready, node.starts) == (True, 2)


async def being_started(node: Watched) -> None:
    for _ in range(20):
        if node.starts == 0:
            await asyncio.sleep(0)
    assert (node.starts, node.told().pid) == (1, 0)


async def test_a_node_that_is_stopped_while_it_is_being_started_does_not_stay(tmp_path: Path) -> None:
    store = Ended()
    async with running(tmp_path, store) as node:
        await being_started(node)
        await node.stop()
        assert (node.told().pid, node.starts, store.gone) == (0, 1, ["box-2"] * 2)
        await node.restart(20)
        assert (node.is_ready, node.starts) == (True, 2)


async def test_a_node_that_is_restarted_while_it_is_being_started_comes_back(tmp_path: Path) -> None:
    async with running(tmp_path) as node:
        await being_started(node)
        await node.restart(20)
        assert (node.is_ready, node.starts) == (True, 2)


async def test_a_node_that_does_not_end_in_time_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_NODE", "stubborn")
    monkeypatch.setattr("realtime.front.supervised_node.END_GRACE_S", 0.1)
    async with running(tmp_path, drain_s=0.1) as node:
        await node.until(lambda: node.is_ready)
        await node.stop()
        assert node.told().pid == 0


async def test_a_node_that_says_nothing_gets_nothing_and_is_killed_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("realtime.front.node_process.SILENT_S", 0.1)
    monkeypatch.setattr("realtime.front.node_process.HUNG_S", 0.3)
    async with running(tmp_path) as node:
        await node.until(lambda: node.is_ready)
        await node.until(lambda: not node.is_there)  # this one tells its status once
        await node.until(lambda: node.starts == 2)


async def test_the_front_takes_its_nodes_with_it(tmp_path: Path) -> None:
    async with running(tmp_path) as node:
        await node.until(lambda: node.is_ready)
        pid = node.told().pid
    assert not is_there(f"/proc/{pid}")
