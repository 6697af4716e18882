"""The sockets of a call: whoever finds one can send to it, and no datagram of a stranger ends or holds up the call."""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import pytest
from aioice import Connection, stun
from aioice.ice import ICE_COMPLETED, StunProtocol, get_host_addresses
from aiortc import RTCSessionDescription
from hypothesis import given
from hypothesis import strategies as st

from fakes.peers import Heard, open_peer
from fakes.rtc_client import RtcClient
from realtime.webrtc.candidates import read_candidates
from realtime.webrtc.ice import MAX_REMOTE_CANDIDATES, MAX_WAITING_DATAGRAMS, IceLink
from realtime.webrtc.ice_port import local_addresses
from realtime.webrtc.offer import read_offer
from realtime.webrtc.peer import Peer
from realtime.webrtc.settings import IceServer, WebRtcSettings

# pyright: reportPrivateUsage=false


def binding_request(attributes: bytes) -> bytes:
    return struct.pack("!HHL", 1, len(attributes), stun.COOKIE) + bytes(12) + attributes


MALFORMED_STUN = binding_request(b"\x00\x24\x00\x00" + bytes(4))
"""Its PRIORITY has no value."""
TO_A_CALL = [b"", b"\x80" * 1501, MALFORMED_STUN, b"\x16" * 100, b"\x80\x6f" + bytes(30), b"\xff"]


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[Peer, Heard, tuple[str, int]]]:
    """A call, and an address of it."""
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        await client.connect(peer)
        pair = next(iter(client.ice._nominated.values()))
        yield peer, heard, pair.remote_addr


@pytest.mark.parametrize("datagram", TO_A_CALL, ids=lambda datagram: f"{len(datagram)} bytes")
async def test_a_datagram_of_a_stranger_changes_nothing(datagram: bytes) -> None:
    async with connected() as (peer, heard, address):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(datagram, address)
        before = len(heard.packets)
        await heard.until(lambda: len(heard.packets) >= before + 2)
        assert not peer.closed.is_set()


@given(st.lists(st.tuples(st.sampled_from(sorted(stun.ATTRIBUTES_BY_TYPE)), st.integers(0, 30), st.binary(max_size=24))))
def test_no_stun_message_raises(attributes: list[tuple[int, int, bytes]]) -> None:
    message = binding_request(b"".join(struct.pack("!HH", kind, length) + value for kind, length, value in attributes))

    async def receive() -> None:
        async with link() as ice:
            ice._protocols[0].datagram_received(message, ("127.0.0.1", 9))

    asyncio.run(receive())


async def test_what_waits_before_the_handshake_is_bounded() -> None:
    async with link() as ice:
        ice._places.add(("127.0.0.1", 9))
        for _ in range(2 * MAX_WAITING_DATAGRAMS):
            ice._protocols[0].datagram_received(b"\x16" + os.urandom(99), ("127.0.0.1", 9))
        assert ice._queue.qsize() == MAX_WAITING_DATAGRAMS


async def test_a_client_cannot_be_in_any_number_of_places() -> None:
    async with link() as ice:
        ice._early_checks_done = True
        message = stun.Message(stun.Method.BINDING, stun.Class.REQUEST)
        message.attributes["PRIORITY"] = 1
        ports = range(1024, 1024 + 2 * MAX_REMOTE_CANDIDATES)
        for port in ports:
            ice.check_incoming(message, ("127.0.0.1", port), ice._protocols[0])
        assert len(ice.remote_candidates) == MAX_REMOTE_CANDIDATES
        assert len(ice._check_list) <= MAX_REMOTE_CANDIDATES
        assert [port for port in ports if ice.is_known(("127.0.0.1", port))] == list(ports)[MAX_REMOTE_CANDIDATES:]


async def test_a_client_cannot_name_any_number_of_places() -> None:
    named = [f"1 1 udp 2130706431 127.0.0.1 {port} typ host" for port in range(1024, 1024 + 2 * MAX_REMOTE_CANDIDATES)]
    async with link() as ice:
        for line in named:
            await ice.add_candidates(read_candidates([line]))
        assert len(ice.remote_candidates) == MAX_REMOTE_CANDIDATES


@pytest.mark.parametrize(("password", "signs"), [(None, 0), ("another's", 0), ("the client's", 1)])
async def test_an_answer_is_a_sign_of_life_when_only_the_client_can_have_made_it(password: str | None, signs: int) -> None:
    """Whoever reads along on the way sees which answer is waited for."""
    seen: list[None] = []
    async with link(on_sign=lambda: seen.append(None)) as ice:
        ice._key = b"the client's"
        check = stun.Message(stun.Method.BINDING, stun.Class.REQUEST)
        check.attributes["PRIORITY"] = 1
        ice._early_checks_done = True
        ice.check_incoming(check, ("127.0.0.1", 9), ice._protocols[0])
        seen.clear()
        ice._nominated[1] = ice._check_list[0]
        ice.ask()
        answer = stun.Message(stun.Method.BINDING, stun.Class.RESPONSE, ice._questions[-1])
        if password is not None:
            answer.add_message_integrity(password.encode())
        ice._protocols[0].datagram_received(bytes(answer), ("127.0.0.1", 9))
        assert len(seen) == signs


async def test_a_name_is_never_resolved() -> None:
    offered = "a=candidate:1 1 udp 2122194687 somebody.local 40000 typ host\r\n"
    async with RtcClient() as client:
        sdp = (await client.offer()).replace("a=end-of-candidates\r\n", offered + "a=end-of-candidates\r\n")
        assert all(candidate.address == "127.0.0.1" for candidate in read_offer(sdp).candidates)


def test_loopback_is_offered_last() -> None:
    addresses = local_addresses()
    assert "127.0.0.1" in addresses
    assert addresses.index("127.0.0.1") >= len(addresses) - 2


async def test_a_stun_server_is_asked_for_an_address() -> None:
    loop = asyncio.get_running_loop()
    server, _ = await loop.create_datagram_endpoint(StunServer, local_addr=("0.0.0.0", 0))
    port = server.get_extra_info("sockname")[1]
    async with link(WebRtcSettings(ice_servers=(IceServer(url=f"stun:127.0.0.1:{port}"),))) as ice:
        hosts = {candidate.host for candidate in ice.announced_candidates() if candidate.type == "srflx"}
        own = {address for address in local_addresses() if "." in address and address != "127.0.0.1"}
        assert hosts == ({"203.0.113.9"} if own else set())
    server.close()


@pytest.mark.parametrize("scheme", ["stun", "turn"])
async def test_a_server_that_answers_without_saying_anything_is_left_out(scheme: str) -> None:
    loop = asyncio.get_running_loop()
    server, _ = await loop.create_datagram_endpoint(EmptyStunServer, local_addr=("0.0.0.0", 0))
    url = f"{scheme}:127.0.0.1:{server.get_extra_info('sockname')[1]}"
    before = sorted(os.listdir("/proc/self/fd"))
    async with link(WebRtcSettings(ice_servers=(IceServer(url=url, username="user", credential="secret"),))) as ice:
        assert {candidate.type for candidate in ice.announced_candidates()} == {"host"}
    assert sorted(os.listdir("/proc/self/fd")) == before
    server.close()


@pytest.mark.parametrize("url", ["stun:127.0.0.1:9", "turn:127.0.0.1:9", "turn:127.0.0.1:9?transport=tcp"])
async def test_a_server_that_is_silent_is_left_out(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime.webrtc.ice.SERVER_TIMEOUT_S", 0.02)
    before = sorted(os.listdir("/proc/self/fd"))
    async with link(WebRtcSettings(ice_servers=(IceServer(url=url, username="user", credential="secret"),))) as ice:
        assert {candidate.type for candidate in ice.announced_candidates()} == {"host"}
    assert sorted(os.listdir("/proc/self/fd")) == before


async def test_the_link_is_up_when_the_client_nominates() -> None:
    async with link() as ice:
        connecting = asyncio.create_task(ice.connect())
        await asyncio.sleep(0)
        ice._check_list_state.put_nowait(ICE_COMPLETED)
        await _few_turns()
        assert connecting.done()


class TestStillNeeded:
    """Weaknesses of aioice and aiortc that `ice` mends. When one of these fails, its mending can go."""

    def test_loopback_is_left_out(self) -> None:
        assert "127.0.0.1" not in get_host_addresses(use_ipv4=True, use_ipv6=True)

    async def test_a_malformed_stun_message_raises(self) -> None:
        protocol = StunProtocol(Connection(ice_controlling=False))
        with pytest.raises(Exception, match="unpack requires"):
            protocol.datagram_received(MALFORMED_STUN, ("127.0.0.1", 9))

    @pytest.mark.parametrize("datagram", [b"", b"\x80" * 1501], ids=["empty", "long"])
    async def test_a_datagram_of_a_stranger_ends_a_stock_call(self, datagram: bytes) -> None:
        async with RtcClient() as one, RtcClient() as two:
            await two.connection.setRemoteDescription(RTCSessionDescription(await one.offer(), "offer"))
            await two.connection.setLocalDescription(await two.connection.createAnswer())
            await one.accept(two.connection.localDescription.sdp)
            await one.opened.wait()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.sendto(datagram, one.ice._nominated[1].local_addr)
            await one.closed.wait()

    async def test_a_nomination_is_noticed_by_polling(self) -> None:
        stock = Connection(ice_controlling=False)
        await stock.gather_candidates()
        stock.remote_username, stock.remote_password = "user", "password"
        connecting = asyncio.create_task(stock.connect())
        await asyncio.sleep(0)
        stock._check_list_state.put_nowait(ICE_COMPLETED)
        await _few_turns()
        assert not connecting.done()
        connecting.cancel()
        await stock.close()

    async def test_any_number_of_datagrams_waits(self) -> None:
        stock = Connection(ice_controlling=False)
        for _ in range(2 * MAX_WAITING_DATAGRAMS):
            stock.data_received(b"\x16", 1)
        assert stock._queue.qsize() == 2 * MAX_WAITING_DATAGRAMS


class StunServer(asyncio.DatagramProtocol):
    """Tells everybody the same address."""

    says: Mapping[str, Any] = MappingProxyType({"XOR-MAPPED-ADDRESS": ("203.0.113.9", 40_000)})

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  it is one
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        request = stun.parse_message(data)
        answer = stun.Message(request.message_method, stun.Class.RESPONSE, request.transaction_id)
        answer.attributes |= self.says
        self.transport.sendto(bytes(answer), addr)


class EmptyStunServer(StunServer):
    says = MappingProxyType({})


@asynccontextmanager
async def link(settings: WebRtcSettings | None = None, on_sign: Callable[[], None] = lambda: None) -> AsyncGenerator[IceLink]:
    async with RtcClient() as client:
        offer = read_offer(await client.offer())
    ice = IceLink(settings or WebRtcSettings(), offer, on_sign)
    await ice.gather_candidates()
    try:
        yield ice
    finally:
        await ice.close()


async def _few_turns() -> None:
    """Of the loop: too few for 20 ms to pass."""
    for _ in range(10):
        await asyncio.sleep(0)
