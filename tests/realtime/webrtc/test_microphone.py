"""A microphone with a real media worker: what comes out is what was said, as long as it was, whatever the network did."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

import recordings
from fakes import foreign_opus, sounds
from fakes.lossy_network import SLOT_S, Arrival, delayed, stream, without
from realtime.media.call_codecs import CallCodec, Voice
from realtime.media.client import MediaClient
from realtime.webrtc.microphone import Microphone
from realtime.webrtc.packets import AudioPacket

Sound = NDArray[np.int16]
FRAME_SAMPLES = 480


class Session:
    """Gets what the microphone hears."""

    def __init__(self) -> None:
        self.pcm = b""
        self._news = asyncio.Event()

    async def append(self, pcm: bytes) -> None:
        self.pcm += pcm
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._news.clear()
            await self._news.wait()


async def heard(
    media: MediaClient, arrivals: Sequence[Arrival], seconds: float, codec: CallCodec = "opus"
) -> tuple[Sound, Microphone]:
    """Packets arrive when they do, by the loop's clock; ends when so much has been heard."""
    microphone, session, loop = Microphone(media, codec), Session(), asyncio.get_running_loop()
    began_s = loop.time() - arrivals[0].at_s
    for at_s, packet in arrivals:
        loop.call_at(began_s + at_s, microphone.arrived, packet)
    hearing = asyncio.create_task(microphone.run(session.append))
    try:
        await session.until(lambda: len(session.pcm) >= round(48_000 * seconds))
    finally:
        hearing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await hearing
    return np.frombuffer(session.pcm, "<i2"), microphone


async def said(media: MediaClient, pcm: bytes, voice: Voice) -> list[bytes]:
    async with media.speak(voice) as job:
        await job.write(pcm)
        job.finish()
        return [packet async for packet in job]


async def test_losses_are_filled_and_counted(media: MediaClient) -> None:
    packets = await said(media, sounds.sine(1).tobytes(), Voice())
    out, microphone = await heard(media, without(stream(packets), lambda place: place in (10, 20, 21, 22)), 51 * SLOT_S)
    assert len(out) == 51 * FRAME_SAMPLES
    assert sounds.pitch(out[4_800:-2_400], 24_000) == pytest.approx(440, abs=2)
    counts = microphone.statistics()
    assert (counts.received, counts.lost, counts.late) == (47, 4, 0)
    assert counts.recovered_s + counts.concealed_s == pytest.approx(4 * SLOT_S)
    assert counts.recovered_s >= SLOT_S


async def test_what_is_late_or_swapped_is_put_right(media: MediaClient) -> None:
    packets = await said(media, sounds.sine(0.6).tobytes(), Voice())
    out, microphone = await heard(media, delayed(stream(packets), lambda place: 0.03 * (place % 4 == 3)), 31 * SLOT_S)
    assert len(out) == 31 * FRAME_SAMPLES
    assert sounds.pitch(out[2_400:-2_400], 24_000) == pytest.approx(440, abs=2)
    assert microphone.statistics().lost == 0


@pytest.mark.parametrize("frame_ms", [10, 20, 40, 60])
async def test_stereo_is_mixed_and_packets_may_be_long(media: MediaClient, frame_ms: int) -> None:
    packets = foreign_opus.packets(sounds.sine(1.2, 440, 48_000), frame_ms, channels=2)
    ticks = 48 * frame_ms
    arrivals = [Arrival(0.0, AudioPacket(place, place * ticks, packet)) for place, packet in enumerate(packets)]
    out, _ = await heard(media, arrivals, 1.2)
    out = out[:28_800]  # what comes after that the clock has filled
    assert sounds.pitch(out[4_800:-2_400], 24_000) == pytest.approx(440, abs=1)
    assert np.abs(out[4_800:-4_800]).max() == pytest.approx(13_107, rel=0.25)


@pytest.mark.parametrize("law", ["pcmu", "pcma"])
async def test_a_telephone_is_heard_at_the_right_pitch(media: MediaClient, law: CallCodec) -> None:
    packets = await said(media, sounds.sine(1, 1_000).tobytes(), Voice(codec=law))
    arrivals = [Arrival(0.0, AudioPacket(place, 160 * place, packet)) for place, packet in enumerate(packets) if place != 20]
    out, microphone = await heard(media, arrivals, 0.98, law)
    assert len(out) == pytest.approx(24_000, abs=FRAME_SAMPLES)
    assert sounds.pitch(out[:9_600], 24_000) == pytest.approx(1_000, abs=3)
    assert microphone.statistics().concealed_s == SLOT_S


async def test_a_pause_that_is_not_sent_is_as_long_as_it_was(media: MediaClient) -> None:
    word = recordings.spoken_commands()[0].samples
    said_once = len(word) // FRAME_SAMPLES * FRAME_SAMPLES
    pause = 60 * FRAME_SAMPLES
    pcm = recordings.to_pcm(np.concatenate([word[:said_once], np.zeros(pause, np.float32), word[:said_once]]))
    slots = foreign_opus.SparingEncoder().sent(pcm)
    assert slots.count(b"") > 40
    out, microphone = await heard(media, stream(slots), len(slots) * SLOT_S)
    assert len(out) == pytest.approx(len(slots) * FRAME_SAMPLES, abs=FRAME_SAMPLES)
    assert microphone.statistics().silent_s == pytest.approx(slots.count(b"") * SLOT_S, abs=SLOT_S)
    first, second = out[:said_once].astype(np.float64), out[said_once + pause :].astype(np.float64)
    likeness = np.correlate(second[:8_640], first[960:8_160], "valid")
    assert np.argmax(likeness) == pytest.approx(960, abs=FRAME_SAMPLES)


async def test_when_nothing_comes_time_goes_on_and_a_turn_can_end(media: MediaClient) -> None:
    packets = await said(media, sounds.sine(0.2).tobytes(), Voice())
    out, microphone = await heard(media, stream(packets), 1.0)
    assert not out[-4_800:].any()
    assert microphone.statistics().silent_s >= 0.5


async def test_while_packets_come_there_is_hardly_a_timer(media: MediaClient, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timers = asyncio.get_running_loop(), list[float]()
    call_at = loop.call_at

    def counted(when: float, callback: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, callback, *args)

    packets = await said(media, sounds.sine(1).tobytes(), Voice())
    sent = stream(packets)
    monkeypatch.setattr(loop, "call_at", counted)
    await heard(media, sent, 51 * SLOT_S)
    assert len(timers) - len(sent) < len(sent) / 3  # a few of them are others'
