"""What arrives at a call's port and is not from its client, or is from it a second time: nothing happens."""

import asyncio
import socket

import pytest

from fakes.peers import open_peer
from fakes.rtc_client import RtcClient
from fakes.udp_relay import UdpRelay
from realtime.webrtc.liveness import LOST_AFTER_S
from realtime.webrtc.offer import read_offer

FATAL_ALERT = bytes.fromhex("15 fefd 0000 000000000000 0002 02 28")
"""Of DTLS: the handshake has failed. It comes in clear as long as there are no keys."""
GARBAGE = (
    b"\x16\xfe\xfd" + bytes(60),
    b"\x80\x60" + bytes(40),
    b"\x80\xc8" + bytes(40),
    b"\x17\xfe\xfd" + bytes(60),
    FATAL_ALERT,
)


@pytest.mark.parametrize("from_elsewhere", [False, True])
async def test_what_was_heard_once_is_not_heard_again(from_elsewhere: bool) -> None:
    """Sound and reports, as they were sent and encrypted."""
    async with UdpRelay() as relay, open_peer() as (peer, _, heard), RtcClient(relay=relay) as client:
        await client.connect(peer)
        await heard.until(lambda: len(heard.packets) > 10)
        recorded = [data for data in relay.sent if data[0] > 127]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for data in recorded:
                if from_elsewhere:
                    stranger.sendto(data, relay.server)
                else:
                    relay.inject(data)
        before = len(heard.packets)
        await heard.until(lambda: len(heard.packets) > before + 10)
        sequences = [packet.sequence for packet in heard.packets]
        assert len(sequences) == len(set(sequences))
        assert not peer.closed.is_set()


async def test_a_recording_does_not_keep_a_lost_client_alive() -> None:
    async with UdpRelay() as relay, open_peer() as (peer, _, heard), RtcClient(relay=relay) as client:
        await client.connect(peer)
        await heard.until(lambda: len(heard.packets) > 10)
        relay.cut()
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for delay_s in (0.5, 1.0, 1.5, 2.0):
            for data in relay.sent:
                if not 0 <= data[0] <= 3:
                    loop.call_later(delay_s, relay.inject, data)
        await peer.ended()
        assert (peer.end, loop.time() - began_s < LOST_AFTER_S + 2.0) == ("lost", True)


@pytest.mark.parametrize("setup", ["active", "passive"])
async def test_a_handshake_listens_to_no_stranger(setup: str) -> None:
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        offer = (await client.offer()).replace("a=setup:actpass", f"a=setup:{setup}")
        answer = await peer.answer(read_offer(offer))
        port = next(int(line.split()[5]) for line in answer.splitlines() if line.startswith("a=candidate:"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            meddling = asyncio.create_task(_meddle(stranger, port))
            await client.accept(answer)
            await peer.connected.wait()
            meddling.cancel()
        await heard.until(lambda: len(heard.packets) > 2)


async def _meddle(stranger: socket.socket, port: int) -> None:
    while True:
        for data in GARBAGE:
            stranger.sendto(data, ("127.0.0.1", port))
        await asyncio.sleep(0)
