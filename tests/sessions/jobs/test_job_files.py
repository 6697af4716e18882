"""Films on disk."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from sessions.jobs.files import JobFiles, NoRoom
from sessions.store.job_records import JobState


async def written(files: JobFiles, job_id: str, data: bytes = b"film") -> str:
    async with files.writing(job_id) as file:
        await file.write(data)
        return await file.finish()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def test_a_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    files = JobFiles(tmp_path, "host", 100)
    async with files.writing("video_1") as file:
        await file.write(b"fi")
        await file.write(memoryview(b"lm"))
        [unfinished] = names(tmp_path)
        assert unfinished.endswith(".part")
        name = await file.finish()
    path = await files.find("host", name)
    assert path is not None
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"film", 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert len(name) > len("video_1.mp4") + 30, "it cannot be guessed"


async def test_what_is_not_finished_is_gone(tmp_path: Path) -> None:
    async with JobFiles(tmp_path, "host", 100).writing("video_1") as file:
        await file.write(b"fi")
    assert names(tmp_path) == []


async def test_no_more_than_there_is_room_for(tmp_path: Path) -> None:
    files = JobFiles(tmp_path, "host", 10)
    await written(files, "video_1", b"12345678")
    assert not await files.is_full()
    with pytest.raises(NoRoom):
        await written(files, "video_2", b"123")
    await written(files, "video_2", b"12")
    assert await files.is_full()
    with pytest.raises(NoRoom):
        await written(files, "video_3", b"1")
    await files.delete("video_1")
    await written(files, "video_3", b"1")


async def test_no_more_than_there_is_room_for_whoever_writes_at_the_same_time(tmp_path: Path) -> None:
    files = JobFiles(tmp_path, "host", 10)
    async with files.writing("video_1") as one, files.writing("video_2") as other:
        await one.write(b"123456")
        with pytest.raises(NoRoom):
            await other.write(b"12345")
        await other.write(b"1234")
        with pytest.raises(NoRoom):
            await one.write(b"1")
        await one.finish()
        await other.finish()
    assert (len(names(tmp_path)), await files.is_full()) == (2, True)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("..", "x.mp4"),
        ("host", "../secret"),
        ("host", "/etc/passwd"),
        ("a/b", "x"),
        ("host", ""),
        ("host", "a\0b"),
        ("", "secret"),
    ],
)
async def test_no_name_leads_elsewhere(tmp_path: Path, host: str, name: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    files = JobFiles(tmp_path / "films", "host", 10)
    await written(files, "video_1")
    assert await files.find(host, name) is None


async def test_only_its_own_are_deleted(tmp_path: Path) -> None:
    files, others = JobFiles(tmp_path, "host", 100), JobFiles(tmp_path, "far", 100)
    await written(files, "video_1")
    kept = [await written(files, "video_12"), await written(others, "video_1")]
    await files.delete("video_1")
    assert names(tmp_path) == sorted(kept)


async def test_files_of_jobs_that_are_over_are_swept_away(tmp_path: Path) -> None:
    files = JobFiles(tmp_path, "host", 1_000)
    kept = [await written(files, f"video_{state}") for state in ("in_progress", "completed")]
    for job_id in ("video_gone", "video_failed"):
        await written(files, job_id)
    (tmp_path / "host" / f"video_gone.{'0' * 32}.mp4.part").touch()
    (tmp_path / "host" / "somebody_elses.txt").touch()
    asked: list[str] = []

    async def states(job_ids: Iterable[str]) -> Mapping[str, JobState]:
        asked.extend(job_ids)
        return {job_id: JobState(job_id.removeprefix("video_")) for job_id in asked if job_id != "video_gone"}

    assert await files.sweep(states) == 2
    assert names(tmp_path) == sorted([*kept, "somebody_elses.txt"])
    assert len(asked) == 4


async def test_nothing_to_sweep(tmp_path: Path) -> None:
    async def states(job_ids: Iterable[str]) -> Mapping[str, JobState]:
        raise AssertionError

    assert await JobFiles(tmp_path / "none", "host", 10).sweep(states) == 0
    await JobFiles(tmp_path / "none", "host", 10).delete("video_1")
