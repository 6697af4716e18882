"""Calls over other codecs than a browser's Opus, and as their clients wish them."""

import numpy as np
import pytest
from aiortc import RTCRtpCodecCapability
from aiortc.rtp import RtcpReceiverInfo, RtcpRrPacket

from fakes import sounds
from fakes.edge import Edge
from fakes.graph import tone
from fakes.offers import CHROMIUM
from fakes.peers import open_peer
from fakes.rtc_client import RtcClient
from realtime.media import g711
from realtime.media.call_codecs import Voice
from realtime.media.g711 import Law
from realtime.webrtc.audio_streams import AudioStreams
from realtime.webrtc.codec_facts import FACTS
from realtime.webrtc.offer import read_offer
from realtime.webrtc.packets import AudioPacket
from realtime.webrtc.rtp import write_rtp

TEXT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Speak."}]}
OPUS = 96


def telephone(law: Law) -> RtcClient:
    client = RtcClient(silence=FACTS[law].silence)
    codec = RTCRtpCodecCapability(f"audio/{law.upper()}", 8_000, 1)
    client.connection.getTransceivers()[0].setCodecPreferences([codec])
    return client


@pytest.mark.parametrize("law", ["pcmu", "pcma"])
async def test_a_telephone_bridge_asks_and_is_answered(edge: Edge, law: Law) -> None:
    async with telephone(law) as client:
        await client.call(edge.http, edge.url)
        async with edge.context.call_media.speak(Voice(codec=law)) as job:
            await job.write(tone(960))
            job.finish()
            client.say([packet async for packet in job])
        heard = await client.event("conversation.item.input_audio_transcription.completed")
        assert heard["transcript"] == "What is the capital of France?"
        await client.event("output_audio_buffer.stopped")
        assert {len(packet.payload) for packet in client.received} == {160}
        steps = np.diff([packet.timestamp for packet in client.received])
        assert set((steps % 160).tolist()) == {0}
        sounding = [packet.payload for packet in client.received if packet.payload != FACTS[law].silence]
        out = np.frombuffer(g711.decode(b"".join(sounding), law), "<i2")
        expected = sounds.pitch(np.frombuffer(tone(960), "<i2"), 24_000)
        assert sounds.pitch(out, 8_000) == pytest.approx(expected, rel=0.05)


def test_what_the_client_misses_is_prepared_for() -> None:
    offer = read_offer(CHROMIUM)
    streams = AudioStreams(offer, lambda packet: None)

    def expected_loss_after(fraction_lost: int, ssrc: int) -> int:
        report = RtcpReceiverInfo(
            ssrc=ssrc, fraction_lost=fraction_lost, packets_lost=0, highest_sequence=0, jitter=0, lsr=0, dlsr=0
        )
        streams.receive_report(bytes(RtcpRrPacket(1, [report])))
        return offer.sound.voice(streams.reported_loss).expected_loss_percent

    assert expected_loss_after(255, ssrc=streams.ssrc ^ 1) == 10
    assert [expected_loss_after(0, streams.ssrc) for _ in range(12)][-1] == 0
    assert [expected_loss_after(13, streams.ssrc) for _ in range(12)][-1] == 5
    assert [expected_loss_after(255, streams.ssrc) for _ in range(12)][-1] == 30


async def test_another_stream_is_heard_when_the_first_has_fallen_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime.webrtc.audio_streams.SILENT_S", 0.0)
    async with open_peer() as (peer, _, heard), RtcClient(silence=None) as client:
        await client.connect(peer)

        async def send(ssrc: int, payload: bytes) -> None:
            await client.send_rtp(write_rtp(ssrc, OPUS, marker=False, audio=AudioPacket(len(heard.packets), 0, payload)))

        await send(1, b"first")
        await send(2, b"second")
        await heard.until(lambda: len(heard.packets) == 2)
        assert [(packet.payload, packet.stream) for packet in heard.packets] == [(b"first", 1), (b"second", 2)]
