"""Jobs in a real media worker: side by side, cancelled, hung, killed."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from engines.launching.withheld import SECRETS
from fakes import sounds
from realtime.media import client as media_client
from realtime.media.client import MediaClient
from realtime.media.formats import FORMATS, AudioFormat
from realtime.media.job import MediaFailed, MediaJob
from realtime.media.messages import FILE_WINDOWS, PIECE_BYTES, FailureKind
from realtime.settings import API_KEY_VARIABLE, SIGNING_KEY_VARIABLE
from realtime.webrtc.turn import SECRET_VARIABLE
from sessions.retention.sealing import KEY_VARIABLE
from sessions.store.address import PASSWORD_VARIABLE

HANGING = Path(__file__).parents[2] / "fakes" / "hanging_media_worker.py"


async def encoded(media: MediaClient, format: AudioFormat, pcm: bytes, piece_bytes: int = 4_801) -> bytes:
    async with media.encode(format, sounds.RATE) as job:
        async with asyncio.TaskGroup() as group:
            group.create_task(fed(job, pcm, piece_bytes))
            reading = group.create_task(read(job))
        return reading.result()


async def fed(job: MediaJob, data: bytes, piece_bytes: int) -> None:
    for start in range(0, len(data), piece_bytes):
        await job.write(data[start : start + piece_bytes])
    job.finish()


async def read(job: MediaJob) -> bytes:
    return b"".join([piece async for piece in job])


async def decoded(media: MediaClient, upload: bytes, rate: int = 16_000) -> bytes:
    async with media.decode(rate) as job:
        await job.write(upload)
        job.finish()
        return await read(job)


@pytest.mark.parametrize("format", ["mp3", "wav", "pcm", "flac"])  # Ogg streams differ by their random serial number
async def test_odd_pieces_are_joined(media: MediaClient, format: AudioFormat) -> None:
    pcm = sounds.sine(0.3).tobytes()
    assert await encoded(media, format, pcm, 4_801) == await encoded(media, format, pcm, 4_801 * 7)


async def test_eight_streams_at_once_do_not_mix(media: MediaClient) -> None:
    async def round_trip(index: int) -> float:
        hertz = 300.0 + 100 * index
        data = await encoded(media, FORMATS[index % 2 * 3], sounds.sine(1, hertz).tobytes())
        samples, rate = sounds.read(data)
        return abs(sounds.pitch(samples, rate) - hertz)

    assert max(await asyncio.gather(*map(round_trip, range(8)))) < 3


async def test_an_upload_comes_back_as_pcm(media: MediaClient) -> None:
    upload = sounds.file(sounds.sine(30, rate=44_100), 44_100, "WAV", channels=2)
    assert len(await decoded(media, upload)) == 30 * 16_000 * 2


async def test_what_is_no_audio_is_the_uploads_fault(media: MediaClient) -> None:
    with pytest.raises(MediaFailed, match="not wav, mp3") as failed:
        await decoded(media, b"just words")
    assert failed.value.kind is FailureKind.INVALID


async def test_a_reader_that_waits_holds_its_writer_back(media: MediaClient) -> None:
    async with media.encode("pcm", sounds.RATE) as job:
        writing = asyncio.create_task(fed(job, bytes(100 * PIECE_BYTES), PIECE_BYTES))
        async with media.encode("mp3", sounds.RATE) as other:  # meanwhile nobody else waits
            await fed(other, sounds.sine(1).tobytes(), 9_600)
            assert await read(other)
        assert not writing.done()
        waiting = FILE_WINDOWS.input + FILE_WINDOWS.output + 1
        assert waiting < 100
        assert len(await read(job)) == 100 * PIECE_BYTES
        await writing


async def test_leaving_early_frees_the_job(media: MediaClient) -> None:
    for _ in range(20):
        async with media.encode("opus", sounds.RATE) as job:
            await job.write(sounds.sine(0.5).tobytes())
            await anext(job)
    await encoded(media, "wav", b"")
    assert threads(media) < 12


async def test_a_killed_worker_fails_its_jobs_and_comes_back() -> None:
    restarts: list[None] = []
    async with MediaClient(back_off_s=(0.0,), on_restart=lambda: restarts.append(None)) as media:
        async with media.encode("mp3", sounds.RATE) as job:
            await job.write(sounds.sine(0.5).tobytes())
            await anext(job)
            first = media.pid
            assert first is not None
            os.kill(first, signal.SIGKILL)
            with pytest.raises(MediaFailed) as failed:
                await read(job)
            with pytest.raises(MediaFailed):
                await fed(job, bytes(PIECE_BYTES * 20), PIECE_BYTES)
        assert failed.value.kind is FailureKind.LOST
        assert await encoded(media, "mp3", sounds.sine(0.2).tobytes())
        assert media.pid != first
        assert len(restarts) == 1


async def test_jobs_of_a_stopped_worker_fail_within_a_second_and_it_is_started_again() -> None:
    async with MediaClient(back_off_s=(0.0,)) as media:
        async with media.encode("mp3", sounds.RATE) as job:
            assert media.pid is not None
            os.kill(media.pid, signal.SIGSTOP)
            async with asyncio.timeout(1):
                with pytest.raises(MediaFailed, match="its process is stopped"):
                    await read(job)
        assert await encoded(media, "mp3", sounds.sine(0.2).tobytes())


async def test_a_codec_that_hangs_ends_its_own_job_only() -> None:
    async with MediaClient((sys.executable, str(HANGING)), back_off_s=(0.0,)) as media:
        first = await encoded(media, "mp3", sounds.sine(0.2).tobytes())
        with pytest.raises(ExceptionGroup) as failed:
            await encoded(media, "flac", sounds.sine(0.2).tobytes())
        stuck, _ = failed.value.split(MediaFailed)
        assert stuck is not None
        assert await encoded(media, "mp3", sounds.sine(0.2).tobytes()) == first


async def test_a_worker_knows_no_secret_of_its_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "do-not-tell")
    known = tmp_path / "environment"
    telling = f"import os, pathlib; pathlib.Path({str(known)!r}).write_text(str(dict(os.environ)))"
    async with MediaClient((sys.executable, "-c", telling), back_off_s=(0.0, 60.0)) as media:
        with pytest.raises(MediaFailed):
            await encoded(media, "mp3", b"")
    assert "'PATH'" in known.read_text()
    assert "do-not-tell" not in known.read_text()


def test_each_secret_of_the_environment_is_among_those_that_are_withheld() -> None:
    """A module that reads one and is not named here is found by its name."""
    assert {API_KEY_VARIABLE, SIGNING_KEY_VARIABLE, KEY_VARIABLE, SECRET_VARIABLE, PASSWORD_VARIABLE} == SECRETS
    read: set[str] = set()
    for folder in ("engines", "sessions", "realtime"):
        for file in (Path(__file__).parents[3] / folder).rglob("*.py"):
            read.update(re.findall(r"ANTIPHON_[A-Z_]*(?:KEY|SECRET|TOKEN|PASSWORD)\b", file.read_text()))
    assert read == SECRETS


async def test_a_worker_that_does_not_start_is_told_of() -> None:
    async with MediaClient((sys.executable, "-c", ""), back_off_s=(0.0, 60.0)) as media:
        with pytest.raises(MediaFailed) as failed:
            await encoded(media, "mp3", b"")
    assert failed.value.kind is FailureKind.LOST


async def test_jobs_beyond_the_limit_are_refused(media: MediaClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media_client, "MAX_ENCODES", 1)
    async with MediaClient() as small, small.encode("wav", sounds.RATE):
        with pytest.raises(MediaFailed, match="1 encode jobs are open") as failed:
            await encoded(small, "wav", b"")
        assert failed.value.kind is FailureKind.BUSY


async def test_no_orphan_is_left() -> None:
    async with MediaClient() as media:
        await encoded(media, "wav", b"")
        pid = media.pid
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def threads(media: MediaClient) -> int:
    return len(list(Path(f"/proc/{media.pid}/task").iterdir()))
