"""`antiphon serve` as a process, with worker processes that run a fake model."""

import os
import signal
from pathlib import Path

import aiohttp
import pytest

from fakes.served import Serve, serving_echoes

STOP_LIMIT_S = 5.0


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    return serving_echoes(tmp_path)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def runs_engines(pid: int) -> bool:
    return b"antiphon one" in Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_it_says_where_it_listens_what_loads_and_when_it_is_ready(serve: Serve) -> None:
    async with serve() as served:
        await served.until(r"there are no keys: whoever is on this machine may use everything, and nobody else")
        await served.until(r"ready after \d")
        assert await served.ready_status() == 200
        assert any("first" in line and "loading" in line for line in served.said)
        assert (await served.stop(signal.SIGTERM))[0] == 0


async def test_a_session_that_is_open_is_told_of_the_end(serve: Serve) -> None:
    async with serve() as served, aiohttp.ClientSession() as http:
        await served.until(r"ready after")
        async with http.ws_connect(f"{served.url}/v1/realtime") as client:
            assert (await client.receive_json())["type"] == "session.created"
            served.process.send_signal(signal.SIGTERM)
            await served.until("stopping: what has begun may take 30 s more; a second Ctrl-C, or SIGTERM, ends it at once")
            kinds = [message.data async for message in client]
            assert "server_draining" in kinds[-1]
            assert client.close_code == 1012
        code, took_s = await served.stop()
        assert (code, took_s < STOP_LIMIT_S) == (0, True)


async def test_an_end_while_loading_leaves_no_process_behind(serve: Serve) -> None:
    async with serve() as served:
        started = children(served.process.pid)
        code, took_s = await served.stop(signal.SIGINT)
        assert (code, took_s < STOP_LIMIT_S) == (0, True)
    assert not [pid for pid in started if is_running(pid)]


async def test_a_second_interrupt_forces(serve: Serve) -> None:
    async with serve() as served:
        await served.until(r"ready after")
        served.process.send_signal(signal.SIGINT)
        await served.until("stopping")
        code, took_s = await served.stop(signal.SIGINT)
        assert code in (0, 130)  # 0 when it was quicker
        assert took_s < STOP_LIMIT_S


async def test_while_a_worker_is_started_again_the_node_lets_in_those_whom_the_others_serve(serve: Serve) -> None:
    async with serve() as served, aiohttp.ClientSession() as http:
        await served.until(r"ready after")
        (worker,) = [pid for pid in children(served.process.pid) if runs_engines(pid)]
        os.kill(worker, signal.SIGKILL)
        await served.until("loading")
        async with http.get(f"{served.url}/v1/admin/nodes") as answer:
            (node,) = (await answer.json())["data"]
        assert (node["ready"], await served.ready_status()) == (True, 503)
        await served.until("ready again")


async def test_a_killed_worker_is_noticed_and_comes_back(serve: Serve) -> None:
    async with serve() as served, aiohttp.ClientSession() as http:
        await served.until(r"ready after")
        (worker,) = [pid for pid in children(served.process.pid) if runs_engines(pid)]
        os.kill(worker, signal.SIGKILL)
        await served.until("ready again")
        async with http.get(f"{served.url}/metrics") as answer:
            assert 'antiphon_worker_restarts_total{worker="one"} 1.0' in (await answer.text()).splitlines()
        assert (await served.stop(signal.SIGTERM))[0] == 0
