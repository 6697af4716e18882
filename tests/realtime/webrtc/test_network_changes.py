"""The client's network changes during a call: sound follows it to whatever pair of addresses it nominates last."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aioice import stun
from aioice.ice import CandidatePair

from fakes.packet_source import FakePacketSource
from fakes.peers import Heard, open_peer
from fakes.rtc_client import RtcClient
from fakes.udp_relay import UdpRelay
from realtime.webrtc.candidates import read_candidates
from realtime.webrtc.ice import MAX_REMOTE_CANDIDATES, IceLink
from realtime.webrtc.ice_port import local_addresses
from realtime.webrtc.offer import read_offer
from realtime.webrtc.packets import Outgoing
from realtime.webrtc.settings import WebRtcSettings

# pyright: reportPrivateUsage=false


async def heard_more(heard: Heard, count: int = 1) -> None:
    until = len(heard.packets) + count
    await heard.until(lambda: len(heard.packets) >= until)


@asynccontextmanager
async def answering(source: FakePacketSource, heard: Heard) -> AsyncGenerator[None]:
    """The server says a packet for each that it hears."""

    async def answer() -> None:
        while True:
            await heard_more(heard)
            source.put(Outgoing(b"\xf8yes", len(heard.packets) * 960))

    task = asyncio.create_task(answer())
    yield
    task.cancel()


async def both_ways(client: RtcClient) -> None:
    """From now on, several packets: an answer comes only to what was heard."""
    until = len(client.received) + 5
    await client.packet(lambda packet: len(client.received) >= until)


async def nominate(client: RtcClient, address: tuple[str, int]) -> None:
    """What a browser does when it finds a better way, and aioice only once in its life."""
    pair = next(iter(client.ice._nominated.values()))
    check = client.ice.build_request(pair, nominate=False)
    check.attributes["USE-CANDIDATE"] = None
    assert client.ice.remote_password is not None
    await pair.protocol.request(check, address, client.ice.remote_password.encode())


async def test_a_better_way_is_taken_and_the_old_one_may_go() -> None:
    """An address that is told in the middle of a call, and that the client itself would not have tried."""
    async with UdpRelay() as relay, open_peer() as (peer, source, heard), RtcClient(relay=relay) as client:
        await client.connect(peer)
        told = [line[12:] for line in client.connection.localDescription.sdp.splitlines() if line.startswith("a=candidate:")]
        async with answering(source, heard):
            await peer.add_candidates(read_candidates(told))
            while client.ice._nominated[1].remote_addr[1] == relay.port:
                await client.packet()
            relay.cut()
            await both_ways(client)


async def test_a_way_whose_first_check_was_broken_off_is_taken_later() -> None:
    async with UdpRelay() as first, UdpRelay() as second, open_peer() as (peer, source, heard), RtcClient(relay=first) as client:
        second.cut()
        blocked = f"a=candidate:2 1 udp 2130706431 127.0.0.1 {second.back_port} typ host\r\na=end-of-candidates\r\n"
        answer = await peer.answer(read_offer((await client.offer()).replace("a=end-of-candidates\r\n", blocked)))
        second.instead_of_server(answer)
        await second.knocked()
        await client.accept(answer)
        async with answering(source, heard):
            await both_ways(client)
            second.mend()
            await nominate(client, ("127.0.0.1", second.port))
            await second.returned(3)


async def test_a_client_behind_a_nat_that_forgot_it_is_heard_at_once_and_spoken_to_when_it_checks() -> None:
    async with UdpRelay() as relay, open_peer() as (peer, source, heard), RtcClient(relay=relay) as client:
        await client.connect(peer)
        async with answering(source, heard):
            await relay.move()
            await heard_more(heard, 5)
            await nominate(client, ("127.0.0.1", relay.port))
            await both_ways(client)


async def test_a_client_that_has_been_at_more_places_than_are_remembered_is_still_followed() -> None:
    async with open_peer() as (peer, source, heard), UdpRelay() as relay, RtcClient(relay=relay) as client:
        await client.connect(peer)
        for _ in range(MAX_REMOTE_CANDIDATES + 8):
            await relay.move()
            await nominate(client, ("127.0.0.1", relay.port))
        async with answering(source, heard):
            await both_ways(client)


async def test_an_older_nomination_that_takes_longer_does_not_win() -> None:
    async with RtcClient() as client:
        ice = IceLink(WebRtcSettings(), read_offer(await client.offer()), on_sign=lambda: None)
    await ice.gather_candidates()
    ice._early_checks_done = True
    check = stun.Message(stun.Method.BINDING, stun.Class.REQUEST)
    check.attributes |= {"PRIORITY": 1, "USE-CANDIDATE": None}
    for port in (9, 10):
        ice.check_incoming(check, ("127.0.0.1", port), ice._protocols[0])
    old, new = (next(pair for pair in ice._check_list if pair.remote_addr[1] == port) for port in (9, 10))
    for pair in (new, old):  # the order in which their checks are answered
        pair.nominated = pair.remote_nominated
        ice.check_state(pair, CandidatePair.State.SUCCEEDED)
        ice.check_complete(pair)
    assert ice._nominated[1] is new
    await ice.close()


class TestIPv6:
    @pytest.fixture(autouse=True)
    def has_it(self) -> None:
        if "::1" not in local_addresses():
            pytest.skip("this machine has no IPv6")

    async def test_a_call(self) -> None:
        async with open_peer() as (peer, source, heard), RtcClient(addresses=("::1",)) as client:
            await client.connect(peer)
            async with answering(source, heard):
                await both_ways(client)
            assert ":" in client.ice._nominated[1].remote_addr[0]

    async def test_every_address_that_can_be_reached_is_offered(self) -> None:
        async with open_peer() as (peer, _, _), RtcClient() as client:
            answer = await peer.answer(read_offer(await client.offer()))
            hosts = {line.split()[4] for line in answer.splitlines() if line.startswith("a=candidate:")}
            assert {address for address in local_addresses() if ":" in address} <= hosts
            assert not any(host.startswith("fe80") for host in hosts)
