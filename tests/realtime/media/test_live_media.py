"""Calls in a real media worker: speaking, hearing, cancelled, killed, beside uploads."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from fakes import sounds
from realtime.media import client as media_client
from realtime.media.client import MediaClient
from realtime.media.job import MediaFailed, MediaJob
from realtime.media.messages import SPEAK_WINDOWS, FailureKind

HANGING = Path(__file__).parents[2] / "fakes" / "hanging_media_worker.py"


async def spoken(media: MediaClient, pcm: bytes) -> list[bytes]:
    async with media.speak() as job:
        await job.write(pcm)
        job.finish()
        return [packet async for packet in job]


async def heard(media: MediaClient, packets: list[bytes]) -> bytes:
    async with media.listen() as job:
        async with asyncio.TaskGroup() as group:
            group.create_task(told(job, packets))
            reading = group.create_task(read(job))
        return reading.result()


async def told(job: MediaJob, packets: list[bytes]) -> None:
    for packet in packets:
        await (job.write(packet) if packet else job.lose(480))
    job.finish()


async def read(job: MediaJob) -> bytes:
    return b"".join([piece async for piece in job])


async def test_a_voice_goes_there_and_back(media: MediaClient) -> None:
    packets = await spoken(media, sounds.sine(3, 440).tobytes())
    assert len(packets) == 151
    out = np.frombuffer(await heard(media, packets), "<i2")
    assert len(out) == 151 * 480
    assert sounds.pitch(out[2_400:-2_400], sounds.RATE) == pytest.approx(440, abs=1)


async def test_sound_comes_at_once_for_each_packet(media: MediaClient) -> None:
    packets = await spoken(media, sounds.sine(0.5).tobytes())
    async with media.listen() as job:
        for packet in packets:
            await job.write(packet)
            assert len(await anext(job)) == 960


async def test_a_packet_comes_as_soon_as_it_is_full(media: MediaClient) -> None:
    async with media.speak() as job:
        for piece in (1_001, 919):  # odd pieces, together two frames
            await job.write(sounds.sine(1).tobytes()[:piece])
            assert await anext(job)
        job.finish()
        assert len([packet async for packet in job]) == 1


async def test_an_answer_without_sound_is_no_packet(media: MediaClient) -> None:
    async with media.speak() as job:
        job.finish()
        assert [packet async for packet in job] == []


async def test_losses_and_garbage_are_filled(media: MediaClient) -> None:
    packets = await spoken(media, sounds.sine(1, 440).tobytes())
    for index in (10, 20, 21, 22, len(packets) - 1):
        packets[index] = b""
    packets[30] = b"\xf2\xff no Opus"
    out = np.frombuffer(await heard(media, packets), "<i2")
    assert len(out) == len(packets) * 480
    assert sounds.pitch(out[2_400:-2_400], sounds.RATE) == pytest.approx(440, abs=3)


async def test_a_cancelled_answer_gives_nothing_more(media: MediaClient) -> None:
    async with media.speak() as job:
        await job.write(sounds.sine(4).tobytes())
        await anext(job)
        job.cancel()
        with pytest.raises(MediaFailed) as failed:
            await anext(job)
        assert failed.value.kind is FailureKind.CANCELLED
        with pytest.raises(MediaFailed):
            await job.write(bytes(960))
    assert len(await spoken(media, sounds.sine(0.1).tobytes())) == 6


async def test_whoever_waits_for_a_cancelled_answer_is_told(media: MediaClient) -> None:
    async with media.speak() as job:
        waiting = asyncio.create_task(read(job))
        await job.write(sounds.sine(0.1).tobytes())
    with pytest.raises(MediaFailed, match="cancelled"):
        await waiting


async def test_packets_that_nobody_takes_hold_their_voice_back(media: MediaClient) -> None:
    seconds = 60
    async with media.speak() as job:
        writing = asyncio.create_task(told(job, [sounds.sine(1).tobytes()] * seconds))
        assert len(await spoken(media, sounds.sine(1).tobytes())) == 51  # meanwhile nobody else waits
        assert not writing.done()
        assert SPEAK_WINDOWS.output / 50 + SPEAK_WINDOWS.input < seconds
        assert len([packet async for packet in job]) == 50 * seconds + 1
        await writing


async def test_a_killed_worker_fails_calls_and_answers_and_comes_back() -> None:
    async with MediaClient(back_off_s=(0.0,)) as media:
        async with media.speak() as speaking, media.listen() as listening:
            await speaking.write(sounds.sine(0.1).tobytes())
            await listening.write(await anext(speaking))
            assert len(await anext(listening)) == 960
            assert media.pid is not None
            os.kill(media.pid, signal.SIGKILL)
            for job in (speaking, listening):
                with pytest.raises(MediaFailed) as failed:
                    await read(job)
                assert failed.value.kind is FailureKind.LOST
        assert len(await spoken(media, sounds.sine(0.1).tobytes())) == 6


async def test_a_silent_call_is_not_taken_for_a_hung_codec() -> None:
    """The codec beside it hangs, and is given up, after many times the limit of that worker."""
    async with (
        MediaClient((sys.executable, str(HANGING)), back_off_s=(0.0,)) as media,
        media.listen() as call,
        media.speak() as answer,
    ):
        for _ in range(3):
            async with media.encode("flac", sounds.RATE) as stuck:
                await stuck.write(bytes(960))
                with pytest.raises(MediaFailed, match="has not come back"):
                    await read(stuck)
        await answer.write(sounds.sine(0.02).tobytes())
        await call.write(await anext(answer))
        assert len(await anext(call)) == 960


async def test_a_call_does_not_wait_for_an_upload(media: MediaClient) -> None:
    minute = sounds.file(sounds.sine(60, rate=44_100), 44_100, "MP3", channels=2)
    packets = await spoken(media, sounds.sine(1).tobytes())
    async with media.decode(16_000) as upload:
        await upload.write(minute * (20 * 2**20 // len(minute)))
        upload.finish()
        await anext(upload)
        decoding = asyncio.create_task(read(upload))
        assert len(await heard(media, packets)) == len(packets) * 960
        assert not decoding.done()
    with pytest.raises(MediaFailed, match="cancelled"):
        await decoding


@pytest.mark.parametrize(("kind", "limit"), [("speak", "MAX_SPEAKS"), ("listen", "MAX_LISTENS")])
async def test_calls_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch, kind: str, limit: str) -> None:
    monkeypatch.setattr(media_client, limit, 1)
    async with MediaClient() as small:
        opened = {"speak": small.speak, "listen": small.listen}[kind]
        async with opened():
            with pytest.raises(MediaFailed, match=f"1 {kind} jobs are open") as failed:
                async with opened():
                    pass
        assert failed.value.kind is FailureKind.BUSY
        async with opened():
            pass


async def test_sixty_four_calls_at_once_stay_apart(media: MediaClient) -> None:
    async def round_trip(index: int) -> float:
        hertz = 300.0 + 20 * index
        packets = await spoken(media, sounds.sine(1, hertz).tobytes())
        out = np.frombuffer(await heard(media, packets), "<i2")
        return abs(sounds.pitch(out[:24_000], sounds.RATE) - hertz)

    assert max(await asyncio.gather(*map(round_trip, range(64)))) < 3


async def test_ended_calls_leave_no_thread(media: MediaClient) -> None:
    for _ in range(20):
        async with media.speak() as answer, media.listen() as call:
            await answer.write(sounds.sine(0.5).tobytes())
            await call.write(await anext(answer))
            await anext(call)
    await spoken(media, sounds.sine(0.1).tobytes())
    assert threads(media) < 12


def threads(media: MediaClient) -> int:
    return len(list(Path(f"/proc/{media.pid}/task").iterdir()))
