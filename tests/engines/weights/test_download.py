"""A download goes on where it stopped, and says what stopped it for good."""

from collections.abc import Generator
from pathlib import Path

import pytest

from engines.weights.download import TRIES_WITHOUT_PROGRESS, DownloadFailed, download
from fakes.registry import FakeRegistry, Fault, fake_registry

BODY = bytes(range(256)) * 4_000
PATH = "/files/model.bin"


class Seen:
    """Records the progress that is reported."""

    def __init__(self) -> None:
        self.last = (0, 0)

    def at(self, done_bytes: int, total_bytes: int) -> None:
        self.last = (done_bytes, total_bytes)

    def close(self) -> None: ...


@pytest.fixture
def registry() -> Generator[FakeRegistry]:
    with fake_registry() as registry:
        registry.files[PATH] = BODY
        yield registry


def fetch(registry: FakeRegistry, target: Path) -> tuple[list[float], Seen]:
    pauses: list[float] = []
    seen = Seen()
    download(registry.url + PATH, target, seen, pauses.append)
    return pauses, seen


def test_whole_file_arrives_at_once(registry: FakeRegistry, tmp_path: Path) -> None:
    pauses, seen = fetch(registry, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == BODY
    assert (pauses, seen.last) == ([], (len(BODY), len(BODY)))
    assert not list(tmp_path.glob("*.part"))


def test_broken_transfer_is_resumed_at_the_byte_where_it_broke(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.faults[PATH] = [Fault(cut_after_bytes=300_000), Fault(cut_after_bytes=1), Fault(status=503)]
    fetch(registry, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == BODY
    assert registry.ranges_asked(PATH) == ["", "bytes=300000-", "bytes=300001-", "bytes=300001-"]


def test_next_run_resumes_what_an_interrupted_run_left(registry: FakeRegistry, tmp_path: Path) -> None:
    (tmp_path / "model.bin.part").write_bytes(BODY[:123_456])
    fetch(registry, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == BODY
    assert registry.ranges_asked(PATH) == ["bytes=123456-"]


def test_server_without_ranges_sends_the_whole_again(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.faults[PATH] = [Fault(cut_after_bytes=300_000), Fault(ignore_range=True)]
    fetch(registry, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == BODY


def test_remains_longer_than_the_file_are_thrown_away(registry: FakeRegistry, tmp_path: Path) -> None:
    (tmp_path / "model.bin.part").write_bytes(BODY + b"more")
    fetch(registry, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == BODY


def test_a_server_that_stays_down_is_given_up_after_growing_pauses(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.faults[PATH] = [Fault(cut_after_bytes=1_000)] + [Fault(status=503)] * 20
    pauses: list[float] = []
    with pytest.raises(DownloadFailed, match=r"model\.bin did not arrive \(HTTP 503\): run the command again to go on"):
        download(registry.url + PATH, tmp_path / "model.bin", Seen(), pauses.append)
    assert pauses == [0.5, 1, 2, 4, 8]
    assert len(pauses) == TRIES_WITHOUT_PROGRESS
    assert (tmp_path / "model.bin.part").read_bytes() == BODY[:1_000]


def test_a_refusal_is_not_tried_again(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.faults[PATH] = [Fault(status=403)]
    with pytest.raises(DownloadFailed, match=r"the registry answered HTTP 403 to model\.bin"):
        fetch(registry, tmp_path / "model.bin")
    assert len(registry.asked) == 1


def test_file_url_of_a_local_index_is_copied(tmp_path: Path) -> None:
    (tmp_path / "local.whl").write_bytes(BODY)
    download((tmp_path / "local.whl").as_uri(), tmp_path / "model.bin", Seen(), lambda _: None)
    assert (tmp_path / "model.bin").read_bytes() == BODY
