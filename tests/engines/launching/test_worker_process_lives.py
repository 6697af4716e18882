"""One life of a worker process as the launcher holds it: its environment, its output and its last words."""

import asyncio
import fcntl
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engines.graph.worker_link import WorkerLink
from engines.launching.withheld import SECRETS
from engines.launching.worker_process import WorkerProcess, environment
from engines.logs import LogFormat, LogStyle
from engines.worker.spec import StageSpec, WorkerSpec
from fakes.pipelines import ECHOES

PATIENCE_S = 20


def spec(folder: Path, pipeline: str = ECHOES.name, style: LogFormat = "text", **options: bool) -> WorkerSpec:
    stage = StageSpec("first", "fakes.echo_model:Echo", str(folder), options=dict(options))
    return WorkerSpec("one", pipeline, str(folder / "one.sock"), (stage,), logs=LogStyle("debug", style))


@pytest.fixture(autouse=True)
def fakes_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "tests")


@asynccontextmanager
async def life(wanted: WorkerSpec, log_fd: int) -> AsyncGenerator[WorkerProcess]:
    async with asyncio.timeout(PATIENCE_S), WorkerProcess.start(wanted, log_fd) as process:
        yield process


@asynccontextmanager
async def log_file(folder: Path) -> AsyncGenerator[int]:
    with (folder / "log").open("wb") as file:
        yield file.fileno()


def test_libraries_report_nothing_home_and_keep_their_temporary_files_in_the_runs_folder(tmp_path: Path) -> None:
    found = environment(spec(tmp_path), str(tmp_path / "w"))
    assert (found["ORT_DISABLE_TELEMETRY"], found["VLLM_NO_USAGE_STATS"], found["HF_HUB_OFFLINE"]) == ("1", "1", "1")
    assert found["TMPDIR"] == str(tmp_path / "w")


async def test_a_worker_knows_no_secret_of_its_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "do-not-tell")
    async with log_file(tmp_path) as log, life(spec(tmp_path), log) as process:
        known = await asyncio.to_thread(Path(f"/proc/{process.pid}/environ").read_bytes)
        assert b"PYTHONPATH=tests" in known
        assert b"do-not-tell" not in known


async def test_what_it_says_is_passed_on_and_its_last_words_are_kept(tmp_path: Path) -> None:
    async with log_file(tmp_path) as log, life(spec(tmp_path, crashes=True), log) as process:
        await process.exited()
    assert process.last_words() == "exit status 3: no room for the weights"
    assert (tmp_path / "log").read_text().endswith("no room for the weights\n")


@pytest.mark.parametrize("style", ["text", "json"])
async def test_last_words_are_a_sentence_in_either_format(tmp_path: Path, style: LogFormat) -> None:
    async with log_file(tmp_path) as log, life(spec(tmp_path, "song", style), log) as process:
        await process.exited()
    assert process.last_words().startswith("exit status 2: ")
    assert "worker one cannot start: pipeline: expected one of voice" in process.last_words()
    assert "{" not in process.last_words()


async def test_who_is_killed_has_no_last_words(tmp_path: Path) -> None:
    async with log_file(tmp_path) as log, life(spec(tmp_path), log) as process:
        link = await WorkerLink.connect(str(tmp_path / "one.sock"), "test")
        os.kill(process.pid, signal.SIGKILL)
        await process.exited()
        link.close()
    assert process.last_words() == "killed by SIGKILL"


async def test_it_has_its_name_whatever_its_gateway_was_started_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which goes into the memory of its arguments and environment, as long as nothing in there has been moved."""
    others = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    for name in os.environ.copy():
        monkeypatch.delenv(name)
    for name, value in {"OMP_NUM_THREADS": "1", **others}.items():
        monkeypatch.setenv(name, value)
    async with log_file(tmp_path) as log, life(spec(tmp_path), log) as process:
        (await WorkerLink.connect(str(tmp_path / "one.sock"), "test")).close()
        title = await asyncio.to_thread(Path(f"/proc/{process.pid}/cmdline").read_bytes)
    assert title.rstrip(b"\0") == b"antiphon one"


async def test_a_reader_of_the_logs_that_stands_still_holds_up_nobody_else(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, b"x" * 4096)
    async with life(spec(tmp_path, crashes=True), writing) as process:
        await process.exited()
    assert process.last_words().startswith("exit status 3")
    os.close(writing)
    os.close(reading)
