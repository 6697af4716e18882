"""Other weights have another hash, and to find it no file is read whole."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from engines.weights import WeightsError
from engines.weights.cache import digest, folder
from engines.weights.likeness import SAMPLE_BYTES, SAMPLES, likeness
from engines.weights.manifest import entry

LARGE_BYTES = 1 << 20


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    here = tmp_path / "mine"
    (here / "voices").mkdir(parents=True)
    (here / "config.json").write_text("{}")
    (here / "model.safetensors").write_bytes(os.urandom(LARGE_BYTES))
    (here / "voices" / "joe.bin").write_bytes(b"joe")
    return here


def test_a_copy_in_another_place_at_another_time_is_the_same(weights: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(weights, tmp_path / "elsewhere" / "yours", copy_function=shutil.copyfile)
    os.utime(copy / "config.json", (0, 0))
    assert likeness(copy) == likeness(weights)


@pytest.mark.parametrize("change", ["content", "name", "size", "first", "last", "trained", "more", "less"])
def test_other_weights_are_others(weights: Path, change: str) -> None:
    before, large = likeness(weights), weights / "model.safetensors"
    content = large.read_bytes()
    match change:
        case "content":
            (weights / "config.json").write_text("[]")
        case "name":
            (weights / "voices" / "joe.bin").rename(weights / "voices" / "amy.bin")
        case "size":
            large.write_bytes(content[: len(content) // 2])
        case "first":
            large.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        case "last":
            large.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        case "trained":  # the same shapes after the same header
            large.write_bytes(content[:100_000] + os.urandom(len(content) - 100_000))
        case "more":
            (weights / "adapter.bin").touch()
        case _:
            (weights / "config.json").unlink()
    assert likeness(weights) != before


def test_a_large_file_is_not_read_whole(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_bytes = 0
    pread = os.pread

    def counted(file: int, size_bytes: int, offset: int) -> bytes:
        nonlocal read_bytes
        read_bytes += size_bytes
        return pread(file, size_bytes, offset)

    monkeypatch.setattr(os, "pread", counted)
    with (weights / "model.safetensors").open("ab") as huge:
        huge.truncate(1 << 40)  # with a hole in it: nobody reads this in a test
    likeness(weights)
    assert read_bytes == SAMPLES * SAMPLE_BYTES


def test_fetched_weights_have_the_hash_of_their_entry(weights: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    assert likeness(folder("kokoro")) == digest(entry("kokoro"))
    unknown = shutil.copytree(weights, folder("mine"))
    assert likeness(unknown) == likeness(weights)


def test_what_cannot_be_read_is_told(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_file: int, _size_bytes: int, _offset: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", broken)
    with pytest.raises(WeightsError, match="mine cannot be read: Input/output error"):
        likeness(weights)
