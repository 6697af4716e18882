"""The whole runtime: real worker processes with a fake model."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from engines.deployment import GraphSettings, StageSettings
from engines.messages.to_gateway import ErrorKind, StageState
from engines.payloads import Payload
from engines.requests import Request, RequestFailed, RequestStream
from engines.run_folder import place_for_sockets
from engines.runtime import Runtime
from engines.supervision import Backoff
from engines.worker.spec import BatchSpec
from engines.worker_settings import WorkerSettings
from fakes.pipelines import ECHOES

AT_ONCE = Backoff(first_s=0.0, limit_s=0.0)
START_LIMIT_S = 20


class Watched(Runtime):
    """Can be waited for."""

    def __init__(self, settings: GraphSettings, backoff: Backoff) -> None:
        self._changed = asyncio.Event()
        super().__init__(settings, backoff=backoff, draw=random.Random(1), on_status=self._changed.set)

    async def until(self, holds: Callable[["Watched"], bool]) -> None:
        async with asyncio.timeout(START_LIMIT_S):
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()


def settings(tmp_path: Path, **options: str | bool) -> GraphSettings:
    """`first` in worker `one` with these options, `second` in worker `two`."""

    def stage(**own: str | bool) -> StageSettings:
        return StageSettings(model="fakes.echo_model:Echo", directory=str(tmp_path), batch=BatchSpec(max=4), options=dict(own))

    return GraphSettings(
        pipeline=ECHOES.name,
        workers={"one": WorkerSettings(stages=("first",)), "two": WorkerSettings(stages=("second",))},
        stages={"first": stage(**options), "second": stage()},
        voices={},
    )


Launch: TypeAlias = Callable[..., AbstractAsyncContextManager[Watched]]
"""Takes a Backoff and the options of stage `first`."""


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launch:
    monkeypatch.setenv("PYTHONPATH", "tests")

    @asynccontextmanager
    async def launch(backoff: Backoff = AT_ONCE, **options: str | bool) -> AsyncGenerator[Watched]:
        runtime = Watched(settings(tmp_path, **options), backoff)
        async with runtime.running():
            yield runtime

    return launch


def request(name: str, output: str = "twice", entry: str = "first") -> Request:
    return Request(request_id=name, entry=entry, outputs=(output,), parameters={})


async def ask(stream: RequestStream, *texts: str) -> list[str]:
    async with stream:
        for text in texts:
            await stream.push(Payload(text=text))
        await stream.push(Payload(), final=True)
        return [delivery.payload.text async for delivery in stream]


def pids(runtime: Runtime) -> dict[str, int | None]:
    return {worker.worker: worker.pid for worker in runtime.worker_statuses()}


def pid(runtime: Runtime, worker: str) -> int:
    found = pids(runtime)[worker]
    assert found is not None
    return found


def is_there(path: str | Path) -> bool:
    return Path(path).exists()


def is_alive(pid: int) -> bool:
    """Whether the process exists and is more than an exit status that nobody has fetched."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_serves_over_two_processes_and_leaves_none(launched: Launch) -> None:
    async with launched() as runtime:
        assert [status.state for status in runtime.stage_statuses()] == [StageState.LOADING] * 2
        await runtime.ready.wait()
        assert await ask(await runtime.submit(request("r")), "a", "b") == ["a", "b", ""]
        assert await ask(await runtime.submit(request("r", "once")), "a") == ["a", ""]
        reports = await runtime.reports()
        assert {name: report.stages[0].produced for name, report in reports.items()} == {"one": 0, "two": 0}
        running = pids(runtime)
        assert all(pid is not None and is_alive(pid) for pid in running.values())
        assert runtime.active() == {"first": 0, "second": 0}
    assert not any(pid is not None and is_alive(pid) for pid in running.values())


async def test_a_worker_that_dies_is_reported_at_once_and_started_again(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        before = pids(runtime)
        waiting = [await runtime.submit(request(f"r{number}")) for number in range(4)]
        reading = [asyncio.create_task(ask(stream, "a")) for stream in waiting[:3]]
        async with asyncio.timeout(1):
            with pytest.raises(RequestFailed, match="one") as failed:
                await ask(waiting[3], "die")
            ended = await asyncio.gather(*reading, return_exceptions=True)
        assert failed.value.kind is ErrorKind.REPLICA_LOST
        assert all(isinstance(outcome, RequestFailed) or outcome == ["a", ""] for outcome in ended)
        assert not runtime.ready.is_set()
        await runtime.ready.wait()
        after = pids(runtime)
        assert after["one"] != before["one"]
        assert after["two"] == before["two"]
        assert await ask(await runtime.submit(request("again")), "a") == ["a", ""]


async def test_a_killed_worker_leaves_no_child_behind(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        child, _ = await ask(await runtime.submit(request("r", "once")), "spawn")
        assert is_alive(int(child))
        os.kill(pid(runtime, "one"), signal.SIGKILL)
        await runtime.until(lambda runtime: not runtime.ready.is_set())
        await runtime.until(lambda runtime: runtime.worker_statuses()[0].starts == 2 and runtime.ready.is_set())
        assert not is_alive(int(child))


async def test_temporary_files_go_with_the_run(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        path, _ = await ask(await runtime.submit(request("r", "once")), "temporary")
        assert is_there(path)
        assert Path(path).parent.name.startswith("antiphon-")
    assert not is_there(Path(path).parent)


def test_sockets_get_short_paths_wherever_temporary_files_go(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, chosen in (("/var/tmp", "/var/tmp"), (f"/{'x' * 60}", "/tmp")):
        monkeypatch.setattr("tempfile.tempdir", place)
        assert place_for_sockets() == chosen


async def test_a_stage_that_cannot_load_is_tried_again_slowly_from_the_first_time_on(launched: Launch) -> None:
    async with launched(Backoff(first_s=0.0, limit_s=60.0), unloadable="the file model.bin is damaged") as runtime:
        await runtime.until(lambda runtime: "none of its stages" in runtime.worker_statuses()[0].note)
        (worker, _), (stage, _) = runtime.worker_statuses(), runtime.stage_statuses()
        assert (stage.state, stage.note) == (StageState.FAILED, "ValueError: the file model.bin is damaged")
        assert worker.starts == 1


async def test_a_hanging_worker_does_not_hold_up_the_end(launched: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.attempt.ABORT_LIMIT_S", 0.05)
    monkeypatch.setattr("engines.worker_process.STOP_GRACE_S", 0.2)
    async with launched() as runtime:
        await runtime.ready.wait()
        stream = await runtime.submit(request("r"))
        await stream.push(Payload(text="hang"))
        running = pids(runtime)
    assert not any(pid is not None and is_alive(pid) for pid in running.values())
    with pytest.raises(RequestFailed, match="shutting down"):
        await anext(aiter(stream))


async def test_callers_of_a_stopped_worker_hear_so_within_a_second_and_it_is_started_again(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        stream = await runtime.submit(request("r"))
        await stream.push(Payload(text="a"))
        assert (await anext(aiter(stream))).payload.text == "a"
        os.kill(pid(runtime, "one"), signal.SIGSTOP)
        async with asyncio.timeout(1):
            with pytest.raises(RequestFailed, match="lost"):
                await ask(stream, "b")
        await runtime.until(lambda runtime: runtime.worker_statuses()[0].starts == 2 and runtime.ready.is_set())
        assert await ask(await runtime.submit(request("again")), "a") == ["a", ""]


async def test_a_worker_that_was_stopped_while_nobody_used_it_costs_its_next_caller_no_second(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        os.kill(pid(runtime, "one"), signal.SIGSTOP)
        async with asyncio.timeout(1):
            with pytest.raises(RequestFailed, match="lost"):
                await ask(await runtime.submit(request("r")), "a")
        await runtime.until(lambda runtime: runtime.worker_statuses()[0].starts == 2 and runtime.ready.is_set())


async def test_a_models_own_error_ends_one_request_and_no_worker(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        for text, kind in (("raise", ErrorKind.ENGINE), ("forbidden", ErrorKind.INVALID)):
            with pytest.raises(RequestFailed) as failed:
                await ask(await runtime.submit(request("r")), text)
            assert failed.value.kind is kind
        assert await ask(await runtime.submit(request("r")), "a") == ["a", ""]
        assert [worker.starts for worker in runtime.worker_statuses()] == [1, 1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"unloadable": "the file model.bin is damaged"}, "model.bin is damaged"), ({"crashes": True}, "no room for the weights")],
)
async def test_a_stage_that_cannot_load_fails_with_its_reason_and_is_tried_again(
    launched: Launch, options: dict[str, str | bool], reason: str
) -> None:
    async with launched(Backoff(first_s=0.0, limit_s=0.01), **options) as runtime:
        await runtime.until(lambda runtime: runtime.worker_statuses()[0].starts > 3)
        await runtime.until(lambda runtime: runtime.stage_statuses()[0].state is StageState.FAILED)
        first, second = runtime.stage_statuses()
        assert reason in first.note
        assert second.state is not StageState.FAILED
        await runtime.until(lambda runtime: runtime.stage_statuses()[1].state is StageState.READY)
        assert await ask(await runtime.submit(request("r", "twice", entry="second")), "a") == ["a", ""]
        with pytest.raises(RequestFailed):
            await runtime.submit(request("r", "once"))


def test_backoff_doubles_to_its_limit_with_jitter_and_slows_down_when_hopeless() -> None:
    backoff = Backoff(first_s=1.0, limit_s=30.0, patience=4)
    full = [max(backoff.delay_s(failures, random.Random(seed)) for seed in range(200)) for failures in range(1, 6)]
    assert [round(delay) for delay in full] == [1, 2, 4, 30, 30]
    assert {backoff.delay_s(1, random.Random(seed)) >= 0.5 for seed in range(200)} == {True}
