"""What is kept of a session is read where it may be read, and nowhere else."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.retention.snapshots import IN_STORE, OTHER_MODELS, Binding, NotRestorable, Origin, Snapshots

CONTENT = b"Hello? How are you?"


def of(pipeline: str, place: str = IN_STORE, key: str | None = None) -> Snapshots:
    return Snapshots(Origin(pipeline, "1"), Binding.PIPELINE, place, key)


def files(folder: Path) -> list[tuple[bytes, int]]:
    """What they hold, and who may read them."""
    return [(file.read_bytes(), file.stat().st_mode) for file in folder.rglob("*") if file.is_file()]


@pytest.mark.parametrize("key", [None, "a secret"])
@pytest.mark.parametrize("in_directory", [False, True])
async def test_it_comes_back_as_it_was(tmp_path: Path, key: str | None, in_directory: bool) -> None:
    snapshots = of("voice", str(tmp_path / "kept") if in_directory else "store", key)
    kept = await snapshots.keep("sess_1", CONTENT, 1)
    assert await snapshots.read("sess_1", kept) == CONTENT
    everything = kept + b"".join(content for content, _ in files(tmp_path))
    assert (b"Hello?" in everything) == (key is None)
    if in_directory:
        ((_, mode),) = files(tmp_path)
        assert mode & 0o077 == 0
        await snapshots.forget("sess_1")
        assert files(tmp_path) == []
        with pytest.raises(NotRestorable):
            await snapshots.read("sess_1", kept)
    await snapshots.forget("sess_1")


async def test_what_is_older_than_any_session_is_deleted(tmp_path: Path) -> None:
    snapshots = of("voice", str(tmp_path))
    for session_id in ("old", "new"):
        await snapshots.keep(session_id, CONTENT, 1)
    (tmp_path / "old.1.a1b2c3d4.snapshot").touch()  # of a node that died while it wrote
    for file in tmp_path.glob("old.*"):  # noqa: ASYNC240 (two files)
        os.utime(file, (0, 0))
    await snapshots.sweep(3_600)
    assert len(files(tmp_path)) == 1
    assert await snapshots.read("new", await snapshots.keep("new", CONTENT, 2)) == CONTENT


async def test_an_owner_that_was_stopped_spoils_nothing_of_its_successors(tmp_path: Path) -> None:
    snapshots = of("voice", str(tmp_path))
    first = await snapshots.keep("sess_1", b"first", 1)
    second = await snapshots.keep("sess_1", b"second", 2)
    assert await snapshots.read("sess_1", first) == b"first"  # the store may not have heard of the second yet
    await snapshots.keep("sess_1", b"late", 1)
    assert await snapshots.read("sess_1", second) == b"second"
    for fence in range(3, 9):
        await snapshots.keep("sess_1", b"newer", fence)
    assert len(files(tmp_path)) == 2
    await snapshots.keep("sess_10", b"another", 1)
    await snapshots.forget("sess_1")
    assert [content for content, _ in files(tmp_path)] == [b"another"]


async def test_another_key_another_session_another_pipeline_or_none_reads_nothing() -> None:
    kept = await of("voice", key="a secret").keep("sess_1", CONTENT, 1)
    for reader, session_id in (
        (of("voice", key="another"), "sess_1"),
        (of("voice", key="a secret"), "sess_2"),
        (of("voice"), "sess_1"),
        (of("another pipeline", key="a secret"), "sess_1"),
    ):
        with pytest.raises(NotRestorable):
            await reader.read(session_id, kept)


@pytest.mark.parametrize("key", [None, "a secret"])
@pytest.mark.parametrize(
    ("binds", "pipeline", "models", "restored"),
    [
        (Binding.PIPELINE, "voice", "2", True),
        (Binding.PIPELINE, "world", "1", False),
        (Binding.MODELS, "voice", "1", True),
        (Binding.MODELS, "voice", "2", False),
        (Binding.MODELS, "world", "1", False),
    ],
)
async def test_what_it_was_made_by_says_who_can_read_it(
    binds: Binding, pipeline: str, models: str, restored: bool, key: str | None
) -> None:
    kept = await Snapshots(Origin("voice", "1"), binds, key=key).keep("sess_1", CONTENT, 1)
    reader = Snapshots(Origin(pipeline, models), binds, key=key)
    if restored:
        assert await reader.read("sess_1", kept) == CONTENT
    else:
        with pytest.raises(NotRestorable) as refused:
            await reader.read("sess_1", kept)
        assert refused.value.told == OTHER_MODELS


async def test_a_conversation_does_not_become_the_state_of_a_kind_that_binds_to_its_models() -> None:
    kept = await of("voice").keep("sess_1", CONTENT, 1)
    with pytest.raises(NotRestorable):
        await Snapshots(Origin("voice", "1"), Binding.MODELS).read("sess_1", kept)


@given(st.binary(max_size=200))
async def test_what_is_no_snapshot_is_refused(kept: bytes) -> None:
    with pytest.raises(NotRestorable):
        await of("voice").read("sess_1", kept)


async def test_the_key_comes_from_the_environment() -> None:
    environment = {"ANTIPHON_SNAPSHOT_KEY": "a secret"}
    kept = await Snapshots.of_environment(Origin("voice", "1"), Binding.PIPELINE, "store", environment).keep("sess_1", CONTENT, 1)
    assert await of("voice", key="a secret").read("sess_1", kept) == CONTENT
