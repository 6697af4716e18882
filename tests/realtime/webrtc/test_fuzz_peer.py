"""A client that is in a call and sends whatever it likes: the call goes on or ends, nothing is left, and others are served."""

import asyncio
import logging
import socket
from collections.abc import Sequence

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.mischief import Mischief, do, mischief
from fakes.peers import Heard, open_peer
from fakes.rtc_client import SILENCE, RtcClient
from realtime.webrtc.channel import MAX_CHUNKS_HELD
from realtime.webrtc.ice import MAX_REMOTE_CANDIDATES, MAX_WAITING_DATAGRAMS
from realtime.webrtc.offer import read_offer
from realtime.webrtc.peer import Peer

# pyright: reportPrivateUsage=false

DEEDS = st.lists(mischief, min_size=10, max_size=60)
STRANGERS = st.lists(st.binary(min_size=1, max_size=1400), max_size=40)
LIMIT_S = 10.0
LONG_EXAMPLES = 300
"""Each takes 0.2 s."""


class Log(logging.Handler):
    """Faults of ours: whatever was logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.faults.append(self.format(record))


def during(deeds: Sequence[Mischief]) -> list[str]:
    """What was logged as a fault."""
    log = Log()
    logging.getLogger().addHandler(log)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_a_call_with(deeds))
    finally:
        logging.getLogger().removeHandler(log)
    return log.faults


async def _a_call_with(deeds: Sequence[Mischief]) -> None:
    before = asyncio.all_tasks()
    async with asyncio.timeout(LIMIT_S):
        async with open_peer() as (peer, _, heard), RtcClient() as client:
            await client.connect(peer)
            await heard.until(lambda: len(heard.packets) > 0)
            await do(client, deeds)
            await _goes_on_or_ends(peer, heard)
            assert is_bounded(peer)
        await peer.ended()
        async with open_peer() as (peer, _, heard), RtcClient(silence=None) as client:
            await client.connect(peer)
            client.say([SILENCE])
            await heard.until(lambda: len(heard.packets) == 1)
    assert asyncio.all_tasks() == before


async def _goes_on_or_ends(peer: Peer, heard: Heard) -> None:
    """The client still sends a packet every 20 ms."""
    so_far = len(heard.packets)
    going_on = asyncio.create_task(heard.until(lambda: len(heard.packets) >= so_far + 3))
    ending = asyncio.create_task(peer.closed.wait())
    await asyncio.wait([going_on, ending], return_when=asyncio.FIRST_COMPLETED)
    for task in (going_on, ending):
        task.cancel()
    await asyncio.wait([going_on, ending])


def is_bounded(peer: Peer) -> bool:
    ice, channel = peer._ice, peer._channel
    assert ice is not None
    assert channel is not None
    held = sum(len(stream.reassembly) for stream in channel._inbound_streams.values())
    waiting = ice._queue.qsize()
    return waiting <= MAX_WAITING_DATAGRAMS and len(ice.remote_candidates) <= MAX_REMOTE_CANDIDATES and held <= MAX_CHUNKS_HELD


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(DEEDS)
def test_whatever_a_client_sends(deeds: list[Mischief]) -> None:
    assert during(deeds) == []


@pytest.mark.full
@pytest.mark.timeout(1200)
@settings(max_examples=LONG_EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(DEEDS)
def test_whatever_a_client_sends_for_long(deeds: list[Mischief]) -> None:
    assert during(deeds) == []


@settings(max_examples=10)
@given(STRANGERS)
def test_strangers_hold_up_no_handshake(datagrams: list[bytes]) -> None:
    """Whatever they send, before and during it."""

    async def call() -> None:
        async with asyncio.timeout(LIMIT_S), open_peer() as (peer, _, heard), RtcClient() as client:
            answer = await peer.answer(read_offer(await client.offer()))
            port = next(int(line.split()[5]) for line in answer.splitlines() if line.startswith("a=candidate:"))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                connecting = asyncio.create_task(client.accept(answer))
                for datagram in datagrams:
                    stranger.sendto(datagram, ("127.0.0.1", port))
                    await asyncio.sleep(0)
                await connecting
                await peer.connected.wait()
            await heard.until(lambda: len(heard.packets) > 0)

    asyncio.run(call())
