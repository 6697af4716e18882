"""Calls through a real coturn, with credentials that are good for a while."""

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aioice import stun
from aioice.turn import create_turn_endpoint
from aiortc import RTCIceServer

from fakes.coturn import RELAY, running_coturn
from fakes.edge import ServeEdge
from fakes.packet_source import FakePacketSource
from fakes.peers import open_peer
from fakes.rtc_client import RtcClient
from realtime.media.client import MediaClient
from realtime.settings import ServerSettings
from realtime.webrtc.offer import read_offer
from realtime.webrtc.peer import Peer
from realtime.webrtc.settings import TurnSettings, WebRtcSettings
from realtime.webrtc.turn import ClientIceServer, Turn, TurnSecretMissing, configured_turn, with_relay

# pyright: reportPrivateUsage=false

SECRET = "a secret of two servers"
SETTINGS = TurnSettings(urls=("turn:turn.example.org", "turns:turn.example.org"), ttl_s=600)


def test_a_password_is_what_the_turn_server_will_compute() -> None:
    server = Turn(SETTINGS, SECRET, now_s=lambda: 1_700_000_000.5).for_clients()
    expiry, _, rest = server.username.partition(":")
    assert (int(expiry), rest != "") == (1_700_000_600, True)
    expected = hmac.new(SECRET.encode(), server.username.encode(), hashlib.sha1).digest()
    assert base64.b64decode(server.credential) == expected
    assert server.urls == SETTINGS.urls


def test_each_client_has_its_own() -> None:
    turn = Turn(SETTINGS, SECRET)
    assert turn.for_clients().username != turn.for_clients().username


def test_without_its_secret_a_turn_server_is_of_no_use() -> None:
    assert configured_turn(TurnSettings(), {}) is None
    with pytest.raises(TurnSecretMissing, match="ANTIPHON_TURN_SECRET"):
        configured_turn(SETTINGS, {"ANTIPHON_TURN_SECRET": ""})
    assert configured_turn(SETTINGS, {"ANTIPHON_TURN_SECRET": SECRET}) is not None


@pytest_asyncio.fixture
async def coturn(tmp_path: Path) -> AsyncIterator[TurnSettings]:
    async with running_coturn(tmp_path, SECRET) as port:
        yield TurnSettings(urls=(f"turn:127.0.0.1:{port}?transport=udp",))


def _client(server: ClientIceServer) -> RtcClient:
    """That is reached through the TURN server alone."""
    turn = RTCIceServer(urls=list(server.urls), username=server.username, credential=server.credential)
    return RtcClient(addresses=(), turn=turn)


class TestThroughCoturn:
    async def test_a_call_of_a_client_that_is_reached_in_no_other_way(
        self, coturn: TurnSettings, serve_edge: ServeEdge, media: MediaClient
    ) -> None:
        settings = ServerSettings(webrtc=WebRtcSettings(turn=coturn))
        edge = await serve_edge(call_media=media, settings=settings, turn=Turn(coturn, SECRET))
        async with edge.http.get(f"{edge.url}/v1/realtime/ice_servers") as response:
            (server,) = await response.json()
        async with _client(ClientIceServer(**server)) as client:
            await client.call(edge.http, edge.url)
            await client.event("session.created")
            await client.packet()
            assert client.ice._nominated[1].local_candidate.type == "relay"
        await edge.idle()

    async def test_a_server_that_is_reached_in_no_other_way(self, coturn: TurnSettings) -> None:
        """Both are at the TURN server, which lets them see nobody else."""
        turn = Turn(coturn, SECRET)
        settings = with_relay(WebRtcSettings(turn=coturn), turn)
        async with open_peer(settings) as (peer, _, heard), _client(turn.for_clients()) as client:
            answer = await peer.answer(read_offer(await client.offer()))
            lines = answer.splitlines(keepends=True)
            relayed = [line for line in lines if not line.startswith("a=candidate") or "typ relay" in line]
            await client.accept("".join(relayed))
            await heard.until(lambda: len(heard.packets) > 2)
            assert client.ice._nominated[1].remote_addr[0] == RELAY

    @pytest.mark.parametrize("turn", [Turn(SETTINGS, "another secret"), Turn(SETTINGS, SECRET, lambda: time.time() - 3600)])
    async def test_a_wrong_secret_and_old_credentials_are_refused(self, coturn: TurnSettings, turn: Turn) -> None:
        address = ("127.0.0.1", int(coturn.urls[0].split(":")[2].partition("?")[0]))
        server = turn.for_clients()
        with pytest.raises(stun.TransactionFailed, match="401"):
            await create_turn_endpoint(asyncio.DatagramProtocol, address, server.username, server.credential)

    async def test_a_server_with_a_wrong_secret_is_called_without_a_relay(self, coturn: TurnSettings) -> None:
        settings = with_relay(WebRtcSettings(turn=coturn), Turn(coturn, "another secret"))
        async with open_peer(settings) as (peer, _, heard), RtcClient() as client:
            await client.connect(peer)
            await heard.until(lambda: len(heard.packets) > 2)

    async def test_a_relay_that_has_died_holds_up_no_hang_up(self, tmp_path: Path) -> None:
        """It would be asked for half a minute to give up what it held."""
        async with running_coturn(tmp_path, SECRET) as port:
            coturn = TurnSettings(urls=(f"turn:127.0.0.1:{port}?transport=udp",))
            settings = with_relay(WebRtcSettings(turn=coturn), Turn(coturn, SECRET))
            peer = Peer(settings, FakePacketSource(), lambda _: None, lambda _: None)
            client = RtcClient()
            await client.connect(peer)
        await client.close()
        before = asyncio.all_tasks()
        await peer.close()
        await peer.ended()
        async with asyncio.timeout(1):
            await asyncio.gather(*(asyncio.all_tasks() & before - {asyncio.current_task()}), return_exceptions=True)
        assert "TurnTransport" not in repr(asyncio.all_tasks())
