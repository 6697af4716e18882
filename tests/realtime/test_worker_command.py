"""`antiphon worker`, as far as it does not get; tests/engines/test_remote_worker.py runs it."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.standalone import Elsewhere
from realtime.cli import main


def test_a_worker_that_is_not_in_the_deployment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "nose"]) == 1
    assert "workers: expected one of ears, mind, mouth, got 'nose'" in capsys.readouterr().err


def test_one_that_has_no_address_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "ears"]) == 1
    assert "workers.ears.address: expected" in capsys.readouterr().err


def test_a_taken_port_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        Elsewhere(tmp_path, both=place)
        command = [sys.executable, "-m", "realtime.cli", "worker", "both", "--deployment", str(tmp_path / "d.yaml")]
        environment = {"PYTHONPATH": "tests", "PATH": "/usr/bin:/bin"}
        ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=50, check=False)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].endswith(
        f"worker both cannot start: [Errno 98] {place} cannot be listened on: Address already in use"
    )
