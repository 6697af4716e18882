"""The lives of real worker processes: how they end, how soon callers hear of it, and that they come back."""

import asyncio
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engines.launching.liveness import Patience
from engines.launching.supervision import Backoff
from engines.launching.worker_settings import WorkerSettings
from engines.messages.to_gateway import ErrorKind, StageState
from engines.payloads import Payload
from engines.requests import RequestFailed
from fakes.launched import Launch, ask, is_alive, is_there, launcher, request

HEARD_S = 1.0
"""Callers of a worker that is lost."""
QUICK = Patience(busy_s=0.1, idle_s=0.2, answer_s=0.1, hang_s=1.0)


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launch:
    monkeypatch.setenv("PYTHONPATH", "tests")
    return launcher(tmp_path)


async def test_a_worker_that_dies_is_reported_at_once_and_started_again(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        before = runtime.pids()
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
        after = runtime.pids()
        assert after["one"] != before["one"]
        assert after["two"] == before["two"]
        assert await ask(await runtime.submit(request("again")), "a") == ["a", ""]


async def test_a_killed_worker_leaves_no_child_behind(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        child, _ = await ask(await runtime.submit(request("r", "once")), "spawn")
        assert is_alive(int(child))
        os.kill(runtime.pid("one"), signal.SIGKILL)
        await runtime.back()
        assert not is_alive(int(child))


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
async def test_callers_of_a_lost_worker_hear_so_within_a_second_and_nobody_else_notices(
    launched: Launch, sent: signal.Signals
) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        stream, other = await runtime.submit(request("r")), await runtime.submit(request("o", "twice", entry="second"))
        await stream.push(Payload(text="a"))
        assert (await anext(aiter(stream))).payload.text == "a"
        os.kill(runtime.pid("one"), sent)
        async with asyncio.timeout(HEARD_S):
            with pytest.raises(RequestFailed, match="lost") as failed:
                await ask(stream, "b")
        assert failed.value.kind is ErrorKind.REPLICA_LOST
        assert await ask(other, "c") == ["c", ""]
        await runtime.back()
        assert runtime.worker_statuses()[1].starts == 1
        assert await ask(await runtime.submit(request("again")), "a") == ["a", ""]


async def test_a_worker_that_was_stopped_while_nobody_used_it_costs_its_next_caller_no_second(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        os.kill(runtime.pid("one"), signal.SIGSTOP)
        async with asyncio.timeout(HEARD_S):
            with pytest.raises(RequestFailed, match="lost"):
                await ask(await runtime.submit(request("r")), "a")
        await runtime.back()


async def test_a_model_that_holds_up_its_whole_process_is_given_up_when_patience_ends(launched: Launch) -> None:
    async with launched(patience=QUICK) as runtime:
        await runtime.ready.wait()
        began = time.monotonic()
        with pytest.raises(RequestFailed, match="lost"):
            await ask(await runtime.submit(request("r")), "grip")
        assert QUICK.hang_s <= time.monotonic() - began < QUICK.hang_s + HEARD_S
        await runtime.until(lambda runtime: "not answered for 1 s" in runtime.worker_statuses()[0].note)
        await runtime.back()


async def test_a_worker_that_holds_more_than_its_budget_is_started_again_and_says_why(launched: Launch) -> None:
    one = WorkerSettings(stages=("first",), memory_gb=0.3)
    async with launched(patience=QUICK, one=one) as runtime:
        await runtime.ready.wait()
        assert await ask(await runtime.submit(request("r", "once")), "hold 50") == ["hold 50", ""]
        with pytest.raises(RequestFailed, match="lost"):
            await ask(await runtime.submit(request("r", "once")), "hold 300", "hang")
        await runtime.until(lambda runtime: "GB, and its memory_gb is 0.3" in runtime.worker_statuses()[0].note)
        await runtime.back()


def opened_for_writing(pipe: Path) -> int:
    """From now on, whoever opens it for reading goes on."""
    return os.open(pipe, os.O_RDWR)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_worker_that_is_lost_while_it_loads_is_started_again(
    launched: Launch, tmp_path: Path, sent: signal.Signals
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with launched(patience=QUICK, waits_for=str(pipe)) as runtime:
        await runtime.until(lambda runtime: runtime.stage_statuses()[1].state is StageState.READY)
        os.kill(runtime.pid("one"), sent)
        await runtime.until(lambda runtime: runtime.worker_statuses()[0].starts == 2)
        opened = opened_for_writing(pipe)
        await runtime.back()
        os.close(opened)


async def test_a_worker_that_is_killed_twice_in_a_row_comes_back(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        os.kill(runtime.pid("one"), signal.SIGKILL)
        await runtime.until(lambda runtime: runtime.worker_statuses()[0].starts == 2)
        os.kill(runtime.pid("one"), signal.SIGKILL)
        await runtime.back(starts=3)
        assert await ask(await runtime.submit(request("r")), "a") == ["a", ""]


async def test_a_killed_worker_leaves_no_file_and_nothing_in_shared_memory(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        path, names, _ = await ask(await runtime.submit(request("r", "once")), "temporary", "semaphore")
        assert is_there(path)
        assert any(is_shared(name) for name in names.split())
        os.kill(runtime.pid("one"), signal.SIGKILL)
        await runtime.back()
        assert not is_there(path)
        assert not any(is_shared(name) for name in names.split())


def is_shared(name: str) -> bool:
    return Path("/dev/shm", name).exists()


# the end


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_worker_that_is_lost_during_the_shutdown_does_not_hold_it_up(
    launched: Launch, monkeypatch: pytest.MonkeyPatch, sent: signal.Signals
) -> None:
    monkeypatch.setattr("engines.launching.worker_process.STOP_GRACE_S", 0.2)
    before = descriptors()
    async with launched() as runtime:
        await runtime.ready.wait()
        await (await runtime.submit(request("r"))).push(Payload(text="a"))
        running = runtime.pids()
        os.kill(runtime.pid("one"), sent)
    assert not any(pid is not None and is_alive(pid) for pid in running.values())
    assert descriptors() == before


def descriptors() -> set[str]:
    """What this process holds open, without what the test runner itself opens and closes."""
    kinds = ("socket:", "pipe:", "anon_inode:", "/memfd")
    held = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    return {name for name in held if name.startswith(kinds)}


async def test_a_hanging_worker_does_not_hold_up_the_end(launched: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.graph.attempt.ABORT_LIMIT_S", 0.05)
    monkeypatch.setattr("engines.launching.worker_process.STOP_GRACE_S", 0.2)
    async with launched() as runtime:
        await runtime.ready.wait()
        stream = await runtime.submit(request("r"))
        await stream.push(Payload(text="hang"))
        running = runtime.pids()
    assert not any(pid is not None and is_alive(pid) for pid in running.values())
    with pytest.raises(RequestFailed, match="shutting down"):
        await anext(aiter(stream))


LAUNCHER = """
import asyncio, sys
from pathlib import Path
from fakes.launched import ask, launcher, request

async def main():
    async with launcher(Path(sys.argv[1]))() as runtime:
        await runtime.ready.wait()
        temporary, shared, _ = await ask(await runtime.submit(request("r", "once")), "temporary", "semaphore")
        print(temporary, shared.split()[0], *runtime.pids().values(), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_launcher_that_dies_takes_its_workers_and_their_folder_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "tests:.")
    command = [sys.executable, "-c", LAUNCHER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launching:
        assert launching.stdout is not None
        temporary, shared, *workers = launching.stdout.readline().split()
        ends = [os.pidfd_open(int(pid)) for pid in workers]
        cleaner = os.pidfd_open(tracker_of(int(workers[0])))
        assert is_shared(shared)
        launching.kill()
    assert len(ends) == 2
    for end in ends:
        assert select.select([end], [], [], 5.0)[0], "a worker outlives its launcher"
        os.close(end)
    assert not is_there(Path(temporary).parent.parent)
    assert select.select([cleaner], [], [], 5.0)[0], "the resource tracker outlives its worker"
    os.close(cleaner)
    assert not is_shared(shared)


def tracker_of(worker: int) -> int:
    """The one process that a worker has started."""
    tasks = Path(f"/proc/{worker}/task").iterdir()
    return next(int(child) for task in tasks for child in (task / "children").read_text().split())


# stages that cannot load


async def test_a_stage_that_cannot_load_is_tried_again_slowly_from_the_first_time_on(launched: Launch) -> None:
    async with launched(Backoff(first_s=0.0, limit_s=60.0), unloadable="the file model.bin is damaged") as runtime:
        await runtime.until(lambda runtime: "none of its stages" in runtime.worker_statuses()[0].note)
        (worker, _), (stage, _) = runtime.worker_statuses(), runtime.stage_statuses()
        assert (stage.state, stage.note) == (StageState.FAILED, "ValueError: the file model.bin is damaged")
        assert worker.starts == 1


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


# long forms


@pytest.mark.full
@pytest.mark.timeout(120)
async def test_callers_of_a_worker_that_held_three_gigabytes_hear_of_its_end_before_they_are_freed(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        for round_number in range(1, 4):
            stream = await runtime.submit(request("r", "once"))
            await stream.push(Payload(text="hold 3000"))
            await anext(aiter(stream))
            killed_at = time.monotonic()
            os.kill(runtime.pid("one"), signal.SIGKILL)
            with pytest.raises(RequestFailed, match="lost"):
                await ask(stream, "b")
            assert time.monotonic() - killed_at < 0.5
            await runtime.back(starts=round_number + 1)


@pytest.mark.full
@pytest.mark.timeout(120)
async def test_a_gateway_whose_workers_have_nothing_to_do_sleeps(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        woken, seconds = wakes(), 10
        await asyncio.sleep(seconds)
        assert (wakes() - woken) / seconds < 2


def wakes() -> int:
    """How often the thread of the event loop has gone to sleep."""
    status = Path("/proc/thread-self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("voluntary_ctxt_switches")))


def test_backoff_doubles_to_its_limit_with_jitter_and_slows_down_when_hopeless() -> None:
    backoff = Backoff(first_s=1.0, limit_s=30.0, patience=4)
    full = [max(backoff.delay_s(failures, random.Random(seed)) for seed in range(200)) for failures in range(1, 6)]
    assert [round(delay) for delay in full] == [1, 2, 4, 30, 30]
    assert {backoff.delay_s(1, random.Random(seed)) >= 0.5 for seed in range(200)} == {True}
