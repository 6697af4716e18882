"""When a worker counts as lost: to the millisecond, under a clock of the test; and what the kernel says of real processes."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from engines.launching.liveness import Condition, Patience, RealTime, condition, until_lost
from fakes.life import FakeLife, FakeTime

PATIENCE = Patience(busy_s=0.25, idle_s=5.0, answer_s=0.5, hang_s=10.0)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def life(time: FakeTime) -> FakeLife:
    return FakeLife(time)


async def lost(life: FakeLife, time: FakeTime, until: float = 1_000.0) -> tuple[str, float]:
    """The reason and the time; ("", …) when it lives on until then."""

    class Enough(Exception):
        pass

    def enough() -> None:
        raise Enough

    time.at(until, enough)
    try:
        return await until_lost(life, PATIENCE, time), time.now()
    except Enough:
        return "", time.now()


async def test_a_worker_that_nobody_uses_is_asked_every_five_seconds_and_heard_and_costs_no_other_wake(
    life: FakeLife, time: FakeTime
) -> None:
    assert await lost(life, time, until=21.0) == ("", 21.0)
    assert life.asked == pytest.approx([5.0, 10.0, 15.0, 20.0], abs=0.01)
    assert len(time.wakes) == 2 * len(life.asked)


async def test_a_busy_worker_that_is_quiet_is_asked_four_times_a_second(life: FakeLife, time: FakeTime) -> None:
    life.called.set()
    await lost(life, time, until=1.1)
    assert life.asked == pytest.approx([0.25, 0.5, 0.75, 1.0], abs=0.01)


async def test_who_talks_is_asked_only_for_what_it_holds(life: FakeLife, time: FakeTime) -> None:
    life.called.set()
    for tick in range(1, 120):
        time.at(tick / 10, life.says_something)
    await lost(life, time, until=11.0)
    assert life.asked == pytest.approx([5.0, 10.0])


@pytest.mark.parametrize(
    ("happens", "reason", "within_s"),
    [
        (FakeLife.stops, "its process is stopped", 0.75),
        (FakeLife.is_killed, "its process is ending", 0.25),
        (FakeLife.hangs, "it has not answered for 10 s", 10.25),
    ],
)
async def test_a_busy_worker_is_lost_in_time(
    life: FakeLife, time: FakeTime, happens: Callable[[FakeLife], None], reason: str, within_s: float
) -> None:
    life.called.set()
    time.at(3.01, life.says_something)
    time.at(3.01, lambda: happens(life))
    found, at = await lost(life, time)
    assert found == reason
    assert at == pytest.approx(3.01 + within_s)


async def test_the_first_caller_of_a_worker_that_stopped_long_ago_waits_half_a_second(life: FakeLife, time: FakeTime) -> None:
    time.at(1.0, life.stops)
    time.at(4.0, life.called.set)
    assert await lost(life, time) == ("its process is stopped", 4.5)


async def test_a_stopped_worker_that_nobody_uses_is_found_too(life: FakeLife, time: FakeTime) -> None:
    time.at(1.0, life.stops)
    assert await lost(life, time) == ("its process is stopped", 5.5)


async def test_a_stop_that_ends_at_once_is_forgiven(life: FakeLife, time: FakeTime) -> None:
    """As a debugger's look at the process."""
    life.called.set()
    life.stops()

    def goes_on() -> None:
        life.silent, life.state = False, Condition.RUNNING
        life.says_something()
        life.answered.set()

    time.at(0.3, goes_on)
    assert await lost(life, time, until=20.0) == ("", 20.0)


async def test_who_is_late_is_not_lost_and_who_loads_may_take_its_time(life: FakeLife, time: FakeTime) -> None:
    life.called.set()
    life.may_be_slow = True
    life.hangs()
    time.at(120.0, life.says_something)
    assert await lost(life, time, until=125.0) == ("", 125.0)


async def test_time_in_which_we_did_not_run_ourselves_is_not_held_against_the_worker(life: FakeLife) -> None:
    class Late(FakeTime):
        async def pause(self, seconds: float, unless: asyncio.Event | None) -> None:
            await super().pause(60.0 if len(life.asked) == 1 and not self.wakes[1:] else seconds, unless)

    time = Late()
    life = FakeLife(time)
    life.called.set()
    life.hangs()
    time.at(61.0, life.says_something)
    time.at(61.0, lambda: setattr(life, "silent", False))
    assert await lost(life, time, until=80.0) == ("", 80.0)


async def test_who_holds_more_than_its_budget_is_lost_with_both_figures(life: FakeLife, time: FakeTime) -> None:
    life.limit_bytes = 4e9
    life.resident_bytes = 4_000_000_000
    time.at(6.0, lambda: setattr(life, "resident_bytes", 4_120_000_000))
    found, at = await lost(life, time)
    assert found == "it holds 4.12 GB, and its memory_gb is 4"
    assert at == pytest.approx(10.0, abs=0.01)


async def test_real_time_is_cut_short_by_the_event() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    await RealTime().pause(60.0, unless=event)
    await RealTime().pause(0.0, unless=None)


# what the kernel says


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as started:
        yield started
        started.kill()


def test_a_process_runs_stands_still_and_ends(process: "subprocess.Popen[bytes]") -> None:
    assert condition(process.pid) is Condition.RUNNING
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    assert condition(process.pid) is Condition.STOPPED
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert condition(process.pid) is Condition.ENDING
    process.wait()
    assert condition(process.pid) is Condition.ENDING
