"""A peer and a plain aiortc client: media and messages both ways, and the end of a connection."""

import asyncio
import re
import socket

import pytest
from aiortc import RTCPeerConnection

from fakes.peers import open_peer
from fakes.rtc_client import SILENCE, RtcClient
from realtime.errors import Refusal
from realtime.webrtc.offer import read_offer
from realtime.webrtc.packets import AudioPacket, Outgoing
from realtime.webrtc.peer import ChannelClosed
from realtime.webrtc.rtp import write_rtp
from realtime.webrtc.settings import WebRtcSettings

SLOT = 960
OPUS = 96
"""The payload type that aiortc offers it with."""


async def test_what_the_client_says_arrives_as_it_was_sent() -> None:
    async with open_peer() as (peer, _, heard), RtcClient(silence=None) as client:
        await client.connect(peer)
        said = [bytes([0xF8, number]) for number in range(10)]
        client.say(said)
        await heard.until(lambda: len(heard.packets) == 10)
        assert [packet.payload for packet in heard.packets] == said
        first = heard.packets[0]
        assert [packet.sequence - first.sequence & 0xFFFF for packet in heard.packets] == list(range(10))
        assert [packet.timestamp - first.timestamp & 0xFFFF_FFFF for packet in heard.packets] == [SLOT * n for n in range(10)]


async def test_what_the_server_says_arrives_as_it_was_handed_over() -> None:
    async with open_peer() as (peer, source, _), RtcClient() as client:
        await client.connect(peer)
        source.put(*(Outgoing(bytes([0xF8, n]), n * SLOT) for n in (0, 1, 2, 5)))
        await client.packet(lambda packet: packet.payload == b"\xf8\x05")
        first = client.received[0]
        assert [packet.sequence - first.sequence for packet in client.received] == [0, 1, 2, 3]
        assert [(packet.timestamp - first.timestamp & 0xFFFF_FFFF) // SLOT for packet in client.received] == [0, 1, 2, 5]
        assert [packet.marker for packet in client.received] == [True, False, False, False]


async def test_a_lost_packet_is_a_gap_and_nothing_waits_for_it() -> None:
    async with open_peer() as (peer, _, heard), RtcClient(silence=None, drop=lambda place: place == 2) as client:
        await client.connect(peer)
        client.say([SILENCE] * 5)
        await heard.until(lambda: len(heard.packets) == 4)
        first = heard.packets[0].sequence
        assert [packet.sequence - first & 0xFFFF for packet in heard.packets] == [0, 1, 3, 4]


async def test_reports_tell_of_loss_and_round_trip() -> None:
    async with open_peer() as (peer, _, _), RtcClient(drop=lambda place: place % 10 == 5) as client:
        await client.connect(peer)
        report = await client.report(lambda report: report.packets_lost > 0 and report.lsr > 0)
        assert 0 < report.fraction_lost < 64
        assert 0 < report.dlsr < 2 * 65_536


async def test_only_one_stream_is_heard_and_only_its_sound() -> None:
    async with open_peer() as (peer, _, heard), RtcClient(silence=None) as client:
        await client.connect(peer)

        async def send(ssrc: int, payload_type: int, payload: bytes) -> None:
            audio = AudioPacket(len(payload), 0, payload)
            await client.send_rtp(write_rtp(ssrc, payload_type, marker=False, audio=audio))

        await send(1, OPUS, b"a")
        await send(1, 13, b"comfort noise")
        await send(1, 110, b"telephone event")
        await send(2, OPUS, b"another stream")
        await send(1, OPUS, b"")
        await send(1, OPUS, b"end")
        await heard.until(lambda: len(heard.packets) == 5)
        assert [packet.payload for packet in heard.packets] == [b"a", b"", b"", b"", b"end"]
        assert {packet.stream for packet in heard.packets} == {1}


@pytest.mark.parametrize("direction", ["recvonly", "inactive"])
async def test_a_client_without_microphone_is_not_heard(direction: str) -> None:
    async with open_peer() as (peer, source, heard), RtcClient(direction=direction) as client:
        await client.connect(peer)
        source.put(Outgoing(SILENCE, 0), Outgoing(SILENCE, SLOT))
        if direction == "recvonly":
            await client.packet()
        while not source.packets.empty():  # the source is kept flowing all the same
            source.asked.clear()
            await source.asked.wait()
        assert heard.packets == []
        assert (client.received == []) is (direction == "inactive")


async def test_the_answer_asks_for_redundancy_and_mono() -> None:
    async with open_peer() as (peer, _, _), RtcClient() as client:
        answer = await peer.answer(read_offer(await client.offer()))
        (fmtp,) = [line for line in answer.splitlines() if line.startswith("a=fmtp:")]
        parameters = set(fmtp.partition(" ")[2].split(";"))
        assert {"useinbandfec=1", "stereo=0", "sprop-stereo=0", "minptime=10", "maxaveragebitrate=32000"} <= parameters
        assert "a=ptime:20" in answer
        assert "127.0.0.1" in answer


async def test_video_is_rejected_and_the_rest_goes_on() -> None:
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        client.connection.addTransceiver("video")
        offer = read_offer(await client.offer())
        answer = await peer.answer(offer)
        sections = [line.split()[:2] for line in answer.splitlines() if line.startswith("m=")]
        assert [kind for kind, _ in sections] == [f"m={section.kind}" for section in offer.sections]
        assert [port == "0" for _, port in sections] == [section.kind == "video" for section in offer.sections]
        group = next(line for line in answer.splitlines() if line.startswith("a=group"))
        assert group == f"a=group:BUNDLE {' '.join(section.mid or '' for section in offer.sections if section.kind != 'video')}"
        assert heard.packets == []


async def test_the_client_leaves() -> None:
    async with open_peer() as (peer, _, _):
        async with RtcClient() as client:
            await client.connect(peer)
        await peer.closed.wait()
        with pytest.raises(ChannelClosed):
            await peer.send(b"late")


async def test_the_server_hangs_up() -> None:
    async with open_peer() as (peer, _, _), RtcClient() as client:
        await client.connect(peer)
        await peer.close()
        await client.closed.wait()


async def test_another_certificate_than_the_offered_one_ends_it() -> None:
    async with open_peer() as (peer, _, _), RtcClient() as client:
        forged = re.sub(r"(a=fingerprint:sha-256) \S+", r"\1 " + ":".join(["00"] * 32), await client.offer())
        await client.accept(await peer.answer(read_offer(forged)))
        await peer.closed.wait()
        assert not peer.connected.is_set()


async def test_closing_twice_and_before_an_answer() -> None:
    async with open_peer() as (peer, _, _), RtcClient() as client:
        await asyncio.gather(peer.close(), peer.close())
        assert peer.closed.is_set()
        with pytest.raises(ConnectionError):
            await peer.answer(read_offer(await client.offer()))


async def test_ports_are_those_of_the_operator() -> None:
    first = _free_ports()
    settings = WebRtcSettings(udp_ports=(first, first + 1))
    async with RtcClient() as client:
        offer = read_offer(await client.offer())
        async with open_peer(settings) as (one, _, _), open_peer(settings) as (two, _, _), open_peer(settings) as (three, _, _):
            taken = _ports(await one.answer(offer))
            assert {taken, _ports(await two.answer(offer))} == {(first,), (first + 1,)}
            with pytest.raises(Refusal, match=f"all UDP ports from {first} to {first + 1} are taken") as caught:
                await three.answer(offer)
            assert (caught.value.status, caught.value.body.code) == (503, "no_free_port")
            await one.close()
            async with open_peer(settings) as (four, _, _):
                assert _ports(await four.answer(offer)) == taken


async def test_announced_addresses_stand_for_the_machine() -> None:
    settings = WebRtcSettings(announced_addresses=("203.0.113.7", "2001:db8::7"))
    async with open_peer(settings) as (peer, _, _), RtcClient() as client:
        answer = await peer.answer(read_offer(await client.offer()))
        hosts = {line.split()[4] for line in answer.splitlines() if line.startswith("a=candidate:")}
        assert hosts == {"203.0.113.7", "2001:db8::7"}


async def test_a_plain_answer_would_lack_what_browsers_need() -> None:
    """Once this fails, aiortc can write the answer itself."""
    async with RtcClient(channel=False) as client:
        stock = RTCPeerConnection()
        offer = (await client.offer()).replace("opus/48000/2\r\n", f"opus/48000/2\r\na=fmtp:{OPUS} useinbandfec=1\r\n")
        await stock.setRemoteDescription(type(client.connection.localDescription)(offer, "offer"))
        answer = (await stock.createAnswer()).sdp
        assert "useinbandfec" not in answer
        await stock.close()


def _ports(answer: str) -> tuple[int, ...]:
    return tuple({int(line.split()[5]) for line in answer.splitlines() if line.startswith("a=candidate:")})


def _free_ports() -> int:
    """Two in a row."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two:
            one.bind(("0.0.0.0", 0))
            port: int = one.getsockname()[1]
            try:
                two.bind(("0.0.0.0", port + 1))
            except OSError:
                continue
            return port
