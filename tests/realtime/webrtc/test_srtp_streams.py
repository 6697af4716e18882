"""A client may name any number of streams; only so many cost anything."""

from collections.abc import Callable

import pytest

from fakes.peers import open_peer
from fakes.rtc_client import RtcClient
from realtime.webrtc.audio_streams import TAKES_OVER_PACKETS
from realtime.webrtc.packets import AudioPacket
from realtime.webrtc.rtp import write_rtp
from realtime.webrtc.srtp_streams import MAX_STREAMS, SrtpStreams

OPUS = 96
ANOTHER = MAX_STREAMS + 1


def sound(ssrc: int) -> bytes:
    return write_rtp(ssrc, OPUS, marker=False, audio=AudioPacket(0, 0, b""))


def report(ssrc: int) -> bytes:
    return b"\x80\xc9\x00\x01" + ssrc.to_bytes(4)


def test_those_that_were_there_first_stay() -> None:
    streams = SrtpStreams()
    for ssrc in range(MAX_STREAMS):
        assert streams.admits(sound(ssrc))
        streams.note(sound(ssrc))
        streams.note(report(ssrc))
    assert all(streams.admits(packet(ssrc)) for ssrc in range(MAX_STREAMS) for packet in (sound, report))
    assert not streams.admits(sound(ANOTHER))
    assert not streams.admits(report(ANOTHER))


def test_what_a_stranger_names_does_not_count() -> None:
    """It is never decrypted."""
    streams = SrtpStreams()
    assert all(streams.admits(sound(ssrc)) for ssrc in range(10 * MAX_STREAMS))


@pytest.mark.parametrize("kind", [sound, report], ids=["sound", "reports"])
async def test_a_client_with_too_many_streams_is_heard_by_the_first_alone(kind: Callable[[int], bytes]) -> None:
    async with open_peer() as (peer, _, heard), RtcClient(silence=None) as client:
        await client.connect(peer)
        await client.send_rtp(sound(1))
        for ssrc in range(2, MAX_STREAMS + 1):
            await client.send_rtp(kind(ssrc))
        for ssrc, payload in ((ANOTHER, b"new"), (1, b"end")):
            for place in range(TAKES_OVER_PACKETS):
                audio = AudioPacket(1 + place, 960 * (1 + place), payload)
                await client.send_rtp(write_rtp(ssrc, OPUS, marker=False, audio=audio))
        await heard.until(lambda: heard.packets[-1:] != [] and heard.packets[-1].payload == b"end")
        assert {packet.payload for packet in heard.packets} == {b"", b"end"}
