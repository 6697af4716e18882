"""The secret that hosts share, as an operator keeps it."""

from pathlib import Path

import pytest

from engines.configuration import ConfigurationError
from engines.launching.worker_settings import WorkerSettings
from engines.network.secret_file import read_secret, secret_file

SECRET = b"sixteen bytes or more"


def written(folder: Path, secret: bytes, mode: int) -> Path:
    file = folder / "secret"
    file.write_bytes(secret)
    file.chmod(mode)
    return file


def test_a_secret_is_read_without_the_line_end(tmp_path: Path) -> None:
    assert read_secret(str(written(tmp_path, SECRET + b"\n", 0o600))) == SECRET


@pytest.mark.parametrize(
    ("secret", "mode", "message"),
    [
        (None, 0, "secret_file: expected a file that can be read"),
        (SECRET, 0o640, "chmod 600"),
        (b"short", 0o600, "at least 16 bytes"),
    ],
)
def test_a_secret_file_that_will_not_do_is_told_with_its_remedy(
    tmp_path: Path, secret: bytes | None, mode: int, message: str
) -> None:
    file = tmp_path / "none" if secret is None else written(tmp_path, secret, mode)
    with pytest.raises(ValueError, match=message):
        read_secret(str(file))


def elsewhere(address: str) -> dict[str, WorkerSettings]:
    return {"mind": WorkerSettings(stages=("mind",), address=address)}


def test_its_path_counts_from_the_deployment(tmp_path: Path) -> None:
    written(tmp_path, SECRET, 0o600)
    assert secret_file(tmp_path / "d.yaml", "secret", {}) == str(tmp_path / "secret")


@pytest.mark.parametrize("address", ["unix:/run/mind.sock", "tcp://127.0.0.1:7100", ""])
def test_nobody_needs_one_on_one_machine(address: str) -> None:
    assert secret_file(Path("d.yaml"), None, elsewhere(address)) == secret_file(Path("d.yaml"), "", {}) == ""


def test_a_worker_on_another_host_needs_one() -> None:
    with pytest.raises(ConfigurationError, match=r"d.yaml: secret_file: expected .* the worker at tcp://gpu-2:7100, got none"):
        secret_file(Path("d.yaml"), None, elsewhere("tcp://gpu-2:7100"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "expected the path of a file, got 7"),
        ("none", "expected a file that can"),
        ("a\0b", "expected a path without the character NUL"),
        ("~nosuchuser", "expected the path of a file or folder, under a home that exists"),
    ],
)
def test_what_is_no_secret_names_the_key(tmp_path: Path, value: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"secret_file: {message}"):
        secret_file(tmp_path / "d.yaml", value, {})
