"""`python -m engines.worker` as a real process."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from engines.logs import LogStyle
from engines.messages.to_gateway import Failed, StageState, StatusChanged, Welcome
from engines.messages.to_worker import Hello
from engines.worker import spec as specs
from engines.worker.listening import listener
from engines.worker.process import ENGINE_DIED
from engines.worker.spec import StageSpec, WorkerSpec
from fakes.gateway import FakeGateway

TESTS = Path(__file__).parents[2]


def spec(folder: Path, **options: bool) -> WorkerSpec:
    stage = StageSpec("first", "fakes.models:ScriptedModel", str(folder), options=dict(options))
    logs = LogStyle("debug", "json")
    return WorkerSpec("bench", "fakes.pipelines:ECHOES", str(folder / "sockets" / "w"), (stage,), logs=logs)


@asynccontextmanager
async def worker(line: bytes, *arguments: str, pass_fds: tuple[int, ...] = ()) -> AsyncGenerator[Process, None]:
    """Started as the launcher does it: `line` is the first line of stdin, which stays open."""
    command = (sys.executable, "-m", "engines.worker", *arguments)
    environment = {"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stderr=PIPE, cwd=TESTS.parent, env=environment, pass_fds=pass_fds, start_new_session=True
    )
    assert process.stdin is not None
    process.stdin.write(line + b"\n")
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def serving(wanted: WorkerSpec) -> AsyncGenerator[tuple[Process, FakeGateway], None]:
    """With an inherited socket that listens already, so that connecting needs no waiting."""
    with listener(wanted) as sock:
        handed_over = msgspec.structs.replace(wanted, listen_fd=sock.fileno())
        async with worker(specs.encoder.encode(handed_over), pass_fds=(sock.fileno(),)) as process:
            gateway = await FakeGateway.connect(Path(wanted.socket))
            gateway.send(Hello("gateway"))
            yield process, gateway
            await gateway.close()


async def ended(process: Process) -> tuple[int, list[str]]:
    """Exit status and the lines on stderr; stdin stays open meanwhile."""
    assert process.stderr is not None
    said = await process.stderr.read()
    return await process.wait(), said.decode().splitlines()


async def test_it_serves_says_so_in_json_and_ends_when_asked(tmp_path: Path) -> None:
    async with serving(spec(tmp_path)) as (process, gateway):
        welcome = await gateway.next(Welcome)
        assert (welcome.worker, welcome.pid) == ("bench", process.pid)
        if welcome.stages[0].state is StageState.LOADING:
            await gateway.next(StatusChanged)
        gateway.submit("r", "first", pipeline="fakes.pipelines:ECHOES")
        gateway.push("r", "hello", stage="first", final=True)
        assert await gateway.texts("r") == ["hello", ""]
        process.send_signal(signal.SIGTERM)
        status, lines = await ended(process)
        assert status == 0
        logged = [json.loads(line) for line in lines]
        assert {line["process"] for line in logged} == {"bench"}
        assert any(line["message"] == "stage first: ready" for line in logged)


async def test_a_model_that_hangs_ends_it_after_everybody_was_told(tmp_path: Path) -> None:
    stage = StageSpec("first", "fakes.echo_model:Echo", str(tmp_path), hang_limit_s=0.2)
    async with serving(msgspec.structs.replace(spec(tmp_path), stages=(stage,))) as (process, gateway):
        welcome = await gateway.next(Welcome)
        if welcome.stages[0].state is StageState.LOADING:
            await gateway.next(StatusChanged)
        gateway.submit("r", "first", pipeline="fakes.pipelines:ECHOES")
        gateway.push("r", "hang", stage="first")
        assert (await gateway.next(Failed)).message == "the model hangs: nothing has come from it for 0.2 s"
        status, lines = await ended(process)
        assert status == ENGINE_DIED
        assert any("the model hangs" in json.loads(line)["message"] for line in lines)


async def test_the_end_of_stdin_ends_it(tmp_path: Path) -> None:
    async with serving(spec(tmp_path)) as (process, gateway):
        await gateway.next(Welcome)
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == -signal.SIGKILL


async def test_a_model_that_cannot_load_is_a_failed_stage_and_no_crash(tmp_path: Path) -> None:
    async with serving(spec(tmp_path, broken=True)) as (process, gateway):
        welcome = await gateway.next(Welcome)
        status = welcome.stages[0]
        if status.state is StageState.LOADING:
            status = (await gateway.next(StatusChanged)).status
        assert status.state is StageState.FAILED
        assert "holds no weights" in status.note
        assert process.returncode is None
        process.terminate()
        _, lines = await ended(process)
        told = [json.loads(line) for line in lines]
        assert [line["message"] for line in told if line["level"] == "error"] == [f"stage first cannot be loaded: {status.note}"]
        assert "Traceback" in str(told)


async def test_the_spec_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_bytes(specs.encoder.encode(msgspec.structs.replace(spec(tmp_path), pipeline="nothing")))
    async with worker(b"", str(file)) as process:
        status, lines = await ended(process)
        assert status == 2
        assert "expected one of voice" in json.loads(lines[-1])["message"]


@pytest.mark.parametrize("line", [b"", b"{", b'{"name": "x"}'])
async def test_a_spec_that_cannot_be_read_is_told_in_one_line(line: bytes) -> None:
    async with worker(line) as process:
        status, lines = await ended(process)
        assert status == 2
        assert len(lines) == 1
        assert "spec cannot be read" in lines[0]


def test_the_socket_folder_must_be_private(tmp_path: Path) -> None:
    wanted = spec(tmp_path)
    Path(wanted.socket).parent.mkdir(mode=0o755)
    with pytest.raises(ValueError, match="mode 0700"):
        listener(wanted)


def test_a_socket_path_that_is_too_long_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at most 107 bytes"):
        listener(msgspec.structs.replace(spec(tmp_path), socket=f"/tmp/{'x' * 110}"))
