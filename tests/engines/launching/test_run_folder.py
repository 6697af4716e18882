"""What a run leaves in the place for temporary files, and what it takes away."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engines.launching.run_folder import place_for_sockets, run_folder

RUN_UNTIL_KILLED = """
import sys
from engines.launching.run_folder import run_folder
with run_folder(sys.argv[1]) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def killed_run(place: Path) -> Path:
    with subprocess.Popen(
        [sys.executable, "-c", RUN_UNTIL_KILLED, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        run.send_signal(signal.SIGKILL)
    return folder


def test_it_is_private_and_goes_with_the_run(tmp_path: Path):
    with run_folder(str(tmp_path)) as folder:
        (Path(folder) / "mind.sock").touch()
        assert os.stat(folder).st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_removed_at_the_next_start(tmp_path: Path):
    left = killed_run(tmp_path)
    (left / "mind.sock").touch()
    with run_folder(str(tmp_path)) as folder:
        assert list(tmp_path.iterdir()) == [Path(folder)]


def test_a_run_that_lives_and_what_is_no_run_s_are_left_alone(tmp_path: Path):
    unknown, file, elsewhere = tmp_path / "antiphon-unknown", tmp_path / "antiphon-file", tmp_path / "elsewhere"
    unknown.mkdir()
    file.touch()
    elsewhere.mkdir()
    (elsewhere / "owner").touch()
    link = tmp_path / "antiphon-link"
    link.symlink_to(elsewhere)
    with run_folder(str(tmp_path)) as living, run_folder(str(tmp_path)) as second:
        assert set(tmp_path.iterdir()) == {unknown, file, elsewhere, link, Path(living), Path(second)}
    assert (elsewhere / "owner").exists()


def test_another_user_s_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    left = killed_run(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(left).st_uid + 1)
    with run_folder(str(tmp_path)):
        assert left.exists()


def test_sockets_get_short_paths_wherever_temporary_files_go(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, chosen in (("/var/tmp", "/var/tmp"), (f"/{'x' * 60}", "/tmp")):
        monkeypatch.setattr("tempfile.tempdir", place)
        assert place_for_sockets() == chosen
