"""Two nodes with the quick voice: who drains lets everybody finish, and their sessions go on at the other node."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.fast_server import DEPLOYMENT
from fakes.redis_server import running_redis
from fakes.served import serving
from realtime.front.control import ask, control_path
from realtime.front.messages import Drain, Look, Restart

pytestmark = [pytest.mark.full, pytest.mark.timeout(120)]
SENTENCES = 8
"""Of an answer: over two seconds of writing."""
BACK_WITHIN_S = 3.0
"""On a busy machine; `bench resume` measures it."""


class Client:
    """A WebSocket client that notes all that it is told, and remembers its newest token."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url
        self.http = http
        self.told: list[dict[str, Any]] = []
        self.news = asyncio.Event()
        self.token = ""
        self.session_id = ""

    async def open(self, resume: str = "") -> None:
        query = f"?resume={resume}" if resume else ""
        self.socket = await self.http.ws_connect(f"{self.url}/v1/realtime{query}", max_msg_size=0)
        self.reading = asyncio.create_task(self._read())
        await self.until("session.created")

    async def ask(self) -> None:
        """For a story, in writing; returns when it has begun."""
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Tell me a story."}]}
        await self.socket.send_json({"type": "conversation.item.create", "item": item})
        await self.socket.send_json({"type": "response.create", "response": {"output_modalities": ["text"]}})
        await self.until("response.output_text.delta")

    async def until(self, kind: str, count: int = 1) -> dict[str, Any]:
        """The one of this kind that is so many-th on this connection."""
        async with asyncio.timeout(20):
            while len(found := [event for event in self.told if event["type"] == kind]) < count:
                self.news.clear()
                await self.news.wait()
        return found[count - 1]

    def errors(self) -> list[str]:
        return [event["error"]["code"] for event in self.told if event["type"] == "error"]

    async def _read(self) -> None:
        async for message in self.socket:
            event = message.json()
            self.told.append(event)
            self.news.set()
            if "resume" in event:
                self.token, self.session_id = event["resume"]["token"], event["session"]["id"]


@asynccontextmanager
async def server(folder: Path) -> AsyncGenerator[str]:
    async with running_redis(folder / "redis") as redis:
        file = folder / "fast.yaml"
        written = DEPLOYMENT.format(folder=folder, sentences=SENTENCES, priority="false", patience_s=60.0, connect_s=10.0)
        file.write_text(f'{written}\nstore: {{url: "{redis.url}", settle_s: 0}}\n')
        async with serving(file)("--nodes", "2") as served:
            await served.until(r"ready after \d")
            yield served.url


async def order(url: str, wish: Drain | Restart) -> None:
    async for answer in ask(control_path(int(url.rpartition(":")[2])), wish):
        assert not answer.fault


async def test_a_rolling_restart_cuts_nobody_off_and_everybody_goes_on(tmp_path: Path) -> None:
    async with server(tmp_path) as url, aiohttp.ClientSession() as http:
        clients = [Client(url, http) for _ in range(4)]
        for client in clients:
            await client.open()
        await asyncio.gather(*(client.ask() for client in clients[:3]))
        await clients[3].socket.close()  # one ends meanwhile
        restarting = asyncio.create_task(order(url, Restart()))
        for client in clients[:3]:
            assert (await client.until("response.done"))["response"]["status"] == "completed"
            await client.reading
            assert client.errors()[-2:] == ["server_draining", "session_moved"]
            assert client.socket.close_code == 1012
            back = Client(url, http)
            await back.open(client.token)
            assert back.session_id == client.session_id
            story = (await back.until("session.created"))["resync"]["items"]
            assert [item["role"] for item in story] == ["user", "assistant"]
            clients[clients.index(client)] = back
        await restarting
        for client in clients[:3]:
            if client.reading.done():  # it had come to the node that was restarted second
                await client.open(client.token)
            await client.ask()
            assert (await client.until("response.done"))["response"]["status"] == "completed"
            await client.socket.close()
            await client.reading


async def test_who_talked_to_a_node_that_is_killed_goes_on_at_the_other_at_once(tmp_path: Path) -> None:
    async with server(tmp_path) as url, aiohttp.ClientSession() as http:
        client = Client(url, http)
        await client.open()
        await client.ask()
        os.kill(await node_with_a_session(url), signal.SIGKILL)
        await client.reading
        assert client.socket.close_code == 1006
        began = time.monotonic()
        back = Client(url, http)
        await back.open(client.token)
        assert time.monotonic() - began < BACK_WITHIN_S
        assert back.session_id == client.session_id
        assert (await back.until("response.done"))["response"]["status"] == "cancelled"  # the one that was cut off
        await back.ask()
        assert (await back.until("response.done", 2))["response"]["status"] == "completed"
        await back.socket.close()
        await back.reading


async def node_with_a_session(url: str) -> int:
    """Its process, once it has told that it has one."""
    while True:
        async for answer in ask(control_path(int(url.rpartition(":")[2])), Look()):
            for node in answer.nodes:
                if node.sessions:
                    return node.pid
