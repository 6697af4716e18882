"""A node that was paused for longer than its lease, and goes on when another one has its sessions: it says nothing more for
them."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from fakes.faithful_client import AGAIN_S
from fakes.quick_nodes import QuickNodes, quick_nodes
from fakes.redis_server import running_redis
from fakes.rtc_client import RtcClient
from realtime.media.opus_frames import OPUS_SILENCE
from sessions.store.address import open_store
from sessions.store.interface import Store

pytestmark = [pytest.mark.full, pytest.mark.timeout(120)]

LEASE_S = 2.0
SUPERSEDED = 4409
WATCHED_S = 1.0
ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "anna"}]}
Event = dict[str, Any]


class Place:
    """Two servers at one store, of which `one` is stopped."""

    def __init__(self, one: QuickNodes, two: QuickNodes, store: Store, http: aiohttp.ClientSession) -> None:
        self.one = one
        self.two = two
        self.store = store
        self.http = http

    def stop(self) -> None:
        self.one.served.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.one.served.process.send_signal(signal.SIGCONT)

    async def taken_over(self, created: Event) -> aiohttp.ClientWebSocketResponse:
        """The client comes back to the other one, as soon as that may have its session."""
        token = created["resume"]["token"]
        async with asyncio.timeout(10 * LEASE_S):
            while True:
                with contextlib.suppress(aiohttp.WSServerHandshakeError):
                    socket = await self.http.ws_connect(f"{self.two.url}/v1/realtime?resume={token}")
                    again: Event = await socket.receive_json()
                    assert again["session"]["id"] == created["session"]["id"]
                    return socket
                await asyncio.sleep(AGAIN_S)


@asynccontextmanager
async def two_servers(folder: Path) -> AsyncGenerator[Place]:
    async with (
        running_redis(folder / "redis") as redis,
        quick_nodes(folder / "one", redis.url, times=1000, lease_s=LEASE_S) as one,
        quick_nodes(folder / "two", redis.url, times=1000, lease_s=LEASE_S) as two,
        open_store(redis.url, LEASE_S) as store,
        aiohttp.ClientSession() as http,
    ):
        first = await http.ws_connect(f"{two.url}/v1/realtime")  # waits until the new store has settled
        await first.receive()
        await first.close()
        yield Place(one, two, store, http)


class Listener:
    """Everything that comes over a socket, as it comes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.kinds: list[str] = []
        self.reading = asyncio.create_task(self._read())
        self._happened = asyncio.Event()

    async def hears(self, kind: str, count: int) -> None:
        async with asyncio.timeout(20):
            while self.kinds.count(kind) < count:
                self._happened.clear()
                await self._happened.wait()

    async def _read(self) -> None:
        async for message in self.socket:
            self.kinds.append(msgspec.json.decode(message.data, type=Event)["type"])
            self._happened.set()


@pytest.mark.parametrize(
    ("modality", "delta"), [("text", "response.output_text.delta"), ("audio", "response.output_audio.delta")]
)
async def test_over_a_websocket_it_says_nothing_more(tmp_path: Path, modality: str, delta: str) -> None:
    async with two_servers(tmp_path) as here:
        socket = await here.http.ws_connect(f"{here.one.url}/v1/realtime")
        created: Event = await socket.receive_json()
        listener = Listener(socket)
        await socket.send_json({"type": "session.update", "session": {"type": "realtime", "output_modalities": [modality]}})
        await socket.send_json({"type": "conversation.item.create", "item": ITEM})
        await socket.send_json({"type": "response.create"})
        await listener.hears(delta, 10)
        here.stop()
        other = await here.taken_over(created)
        owner = await here.store.owner(created["session"]["id"])
        before = len(listener.kinds)
        here.go_on()
        await asyncio.wait_for(listener.reading, 20)
        assert listener.kinds[before:] in ([], ["error"])
        assert socket.close_code == SUPERSEDED
        after = await here.store.owner(created["session"]["id"])
        assert owner is not None
        assert after is not None
        assert (after.node, after.fence) == (owner.node, owner.fence)
        await other.send_json({"type": "response.create"})
        await Listener(other).hears("response.created", 1)


async def test_over_webrtc_it_sends_no_sound_more(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as here, RtcClient() as client:
        await client.call(here.http, here.one.url)
        created = await client.event("session.created")
        client.send({"type": "conversation.item.create", "item": ITEM})
        client.send({"type": "response.create"})
        await client.event("output_audio_buffer.started")
        for _ in range(20):
            await client.packet()
        here.stop()
        await here.taken_over(created)
        loop = asyncio.get_running_loop()
        stopped_at = loop.time()
        here.go_on()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(WATCHED_S):
                await client.packet(lambda packet: packet.arrived_s > stopped_at and packet.payload != OPUS_SILENCE)
