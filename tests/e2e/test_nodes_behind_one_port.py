"""`antiphon serve --nodes 2` over a real Redis: one port, two nodes, workers that outlive both."""

import asyncio
import os
import re
import signal
import ssl
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import cast

import aiohttp
import msgspec
import pytest

from fakes.certificates import write_pair
from fakes.redis_server import running_redis
from fakes.served import Served, serving_echoes
from realtime.front.control import ask, control_path
from realtime.front.messages import Look, Restart, Told

pytestmark = pytest.mark.full
STOP_LIMIT_S = 8.0


class Nodes:
    """A server with two nodes. `session` opens one and says which node has it."""

    def __init__(self, served: Served, http: aiohttp.ClientSession) -> None:
        self.served = served
        self.url = served.url
        self.http = http

    @property
    def control(self) -> Path:
        return control_path(int(self.url.rpartition(":")[2]))

    async def told(self) -> Mapping[str, Told]:
        async for answer in ask(self.control, Look()):
            return {node.node: node for node in answer.nodes}
        raise AssertionError("the front did not answer")

    async def worker_pid(self) -> int:
        """Of the worker `one`, which the front has started."""
        children = Path(f"/proc/{self.served.process.pid}/task/{self.served.process.pid}/children").read_text().split()  # noqa: ASYNC240
        return next(int(pid) for pid in children if b"antiphon one" in Path(f"/proc/{pid}/cmdline").read_bytes())  # noqa: ASYNC240

    async def until_none_is_ready(self) -> None:
        """The front finds each one out by itself: until the last, it sends newcomers there."""
        async with asyncio.timeout(30):
            while any(told.ready for told in (await self.told()).values()):  # noqa: ASYNC110 (another process rings no bell)
                await asyncio.sleep(0.02)

    async def sockets(self, count: int) -> list[aiohttp.ClientWebSocketResponse]:
        """So many sessions, each with its `session.created` read."""
        opened = [await self.http.ws_connect(f"{self.url}/v1/realtime") for _ in range(count)]
        for socket in opened:
            told = await socket.receive_json()
            assert told["type"] == "session.created", told
        return opened


@asynccontextmanager
async def two_nodes(folder: Path, *options: str) -> AsyncGenerator[Nodes]:
    async with (
        running_redis(folder / "redis") as redis,
        aiohttp.ClientSession() as http,
        serving_echoes(folder, redis.url)("--nodes", "2", *options) as served,
    ):
        await served.until(r"ready after \d")
        yield Nodes(served, http)
        code, took_s = await served.stop(signal.SIGTERM)
        assert (code, took_s < STOP_LIMIT_S) == (0, True)


@contextmanager
def stopped(nodes: Iterable[Told]) -> Generator[None]:
    """They go on in any case: killing the front does not end a node that is stopped, and what it holds open stays open."""
    for node in nodes:
        os.kill(node.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for node in nodes:
            os.kill(node.pid, signal.SIGCONT)


async def answers(socket: aiohttp.ClientWebSocketResponse) -> bool:
    """Whether the session goes on: what nobody knows is answered."""
    await socket.send_json({"type": "nonsense"})
    return cast("str", (await socket.receive_json())["type"]) == "error"


async def test_killing_a_node_ends_neither_the_other_nor_the_workers(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as nodes:
        sockets = await nodes.sockets(4)
        before, worker = await nodes.told(), await nodes.worker_pid()
        victim = min(before)
        os.kill(before[victim].pid, signal.SIGKILL)
        await nodes.served.until("ready again")
        going_on = [socket for socket in sockets if await _lives(socket)]
        assert len(going_on) == 2
        after = await nodes.told()
        assert after[victim].pid != before[victim].pid
        assert {name: told.starts for name, told in after.items()} == {victim: 2, max(before): 1}
        assert await nodes.worker_pid() == worker
        for socket in await nodes.sockets(2):
            assert await answers(socket)


async def _lives(socket: aiohttp.ClientWebSocketResponse) -> bool:
    try:
        return await answers(socket)
    except (ConnectionError, TypeError, aiohttp.ClientError):
        return False


async def test_a_rolling_restart_leaves_one_node_ready_all_the_time(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as nodes:
        before = await nodes.told()
        seen: list[bool] = []
        async for answer in ask(nodes.control, Restart()):
            assert not answer.fault
            async with nodes.http.get(f"{nodes.url}/readyz") as ready:
                seen.append(ready.status == 200)
            (socket,) = await nodes.sockets(1)
            assert await answers(socket)
            await socket.close()
        assert len(seen) == 5
        assert all(seen)
        after = await nodes.told()
        assert all(after[name].pid != before[name].pid and after[name].ready for name in before)


async def test_the_front_tells_of_all_nodes_and_answers_for_those_that_are_not_ready(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as nodes:
        async with nodes.http.get(f"{nodes.url}/metrics") as page:
            text = await page.text()
        told = await nodes.told()
        assert all(re.search(rf'^antiphon_sessions_active{{node="{name}"}} ', text, re.MULTILINE) for name in told)
        async with nodes.http.get(f"{nodes.url}/v1/models") as answer:
            assert (answer.status, answer.headers["Connection"]) == (200, "close")
        with stopped(told.values()):
            await nodes.until_none_is_ready()
            async with nodes.http.get(f"{nodes.url}/readyz") as ready:
                assert (ready.status, msgspec.json.decode(await ready.read())["status"]) == (503, "loading")
            async with nodes.http.get(f"{nodes.url}/v1/models") as answer:
                assert answer.status == 503
                assert int(answer.headers["Retry-After"]) > 0
        await nodes.served.until("ready again")


async def test_when_the_front_is_killed_nothing_of_it_is_left(tmp_path: Path) -> None:
    async with (
        running_redis(tmp_path / "redis") as redis,
        aiohttp.ClientSession() as http,
        serving_echoes(tmp_path, redis.url)("--nodes", "2") as served,
    ):
        await served.until(r"ready after \d")
        nodes = Nodes(served, http)
        pids = [await nodes.worker_pid(), *(told.pid for told in (await nodes.told()).values())]
        served.process.kill()
        await served.process.wait()
        async with asyncio.timeout(10):
            for pid in pids:
                await ended(pid)
            assert served.process.stdout is not None
            await served.process.stdout.read()  # nobody else has it any more


async def ended(pid: int) -> None:
    """Returns when the process, which is nobody's child here, has gone."""
    with suppress(ProcessLookupError):
        watched, over = os.pidfd_open(pid), asyncio.Event()
        asyncio.get_running_loop().add_reader(watched, over.set)
        await over.wait()
        asyncio.get_running_loop().remove_reader(watched)
        os.close(watched)


async def test_over_tls_the_front_decrypts_and_renews_its_certificate(tmp_path: Path) -> None:
    pair = write_pair(tmp_path)
    options = ("--nodes", "2", "--tls-cert", str(pair.cert), "--tls-key", str(pair.key))
    async with running_redis(tmp_path / "redis") as redis, serving_echoes(tmp_path, redis.url)(*options) as served:
        await served.until(r"ready after \d")
        url = served.url.replace("127.0.0.1", "localhost")
        await _talk_over_tls(url, pair.cert)
        await served.logs("GET /v1/realtime 101 in")
        assert re.search(r"GET /v1/realtime 101 in \d+ ms for 127\.0\.0\.1", served.log.read_text())
        write_pair(tmp_path)
        served.process.send_signal(signal.SIGHUP)
        await served.logs("the certificate has been read again")
        await _talk_over_tls(url, pair.cert)
        assert (await served.stop(signal.SIGTERM))[0] == 0


async def _talk_over_tls(url: str, trust: Path) -> None:
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=trust))
    async with aiohttp.ClientSession(connector=connector) as http, http.ws_connect(f"{url}/v1/realtime") as socket:
        assert (await socket.receive_json())["type"] == "session.created"
        assert await answers(socket)
