"""Notices a worker that stands still, dies or hangs, by what it says and by what the kernel says of its process.

A worker answers within milliseconds, whatever its models compute: its loop runs none of them. So one that is quiet is asked, and
one that does not answer is looked at. Nothing here ticks faster than every few seconds while nobody waits for the worker.
"""

import asyncio
import contextlib
from enum import Enum, auto
from pathlib import Path
from time import monotonic
from typing import Protocol

import msgspec

GB = 10**9


class Patience(msgspec.Struct, frozen=True):
    """A worker at which requests are open is asked when it has been quiet for `busy_s`, any other every `idle_s`. Without an
    answer it is looked at every `answer_s`, and after `hang_s` it hangs: in between, its loop may be starved by a busy machine.

    A caller of a stopped worker hears so after busy_s + answer_s, which must stay well below a second."""

    busy_s: float = 0.25
    idle_s: float = 5.0
    answer_s: float = 0.5
    hang_s: float = 10.0


class Condition(Enum):
    RUNNING = auto()
    STOPPED = auto()
    """By a signal."""
    ENDING = auto()
    """Killed or done. What a process held is freed before anybody is told of its end: 0.1 to 0.3 s for each gigabyte."""


class Watched(Protocol):
    """A worker's life. `heard_at` is when it said something last; `answered` is set by its answer to the newest question,
    `called` while requests are open there; `resident_bytes` is what its newest answer says, `limit_bytes` what it may hold."""

    @property
    def heard_at(self) -> float: ...
    @property
    def answered(self) -> asyncio.Event: ...
    @property
    def called(self) -> asyncio.Event: ...
    @property
    def resident_bytes(self) -> int: ...
    @property
    def limit_bytes(self) -> float: ...
    @property
    def may_be_slow(self) -> bool:
        """While it loads, importing may hold up its loop for long."""
        ...

    def ask(self) -> None: ...
    def condition(self) -> Condition: ...


class Time(Protocol):
    def now(self) -> float: ...

    async def pause(self, seconds: float, unless: asyncio.Event | None) -> None:
        """Cut short when `unless` is set."""
        ...


class RealTime:
    def now(self) -> float:
        return monotonic()

    async def pause(self, seconds: float, unless: asyncio.Event | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await (unless or asyncio.Event()).wait()


async def until_lost(worker: Watched, patience: Patience, time: Time) -> str:
    """Returns why the worker is of no use any more."""
    asked_at = time.now()
    while True:
        await _until_due(worker, asked_at, patience, time)
        asked_at = time.now()
        worker.ask()
        if fault := await _unanswered(worker, asked_at, patience, time) or _excess(worker):
            return fault


async def _until_due(worker: Watched, asked_at: float, patience: Patience, time: Time) -> None:
    """Also a worker that talks all the time is asked now and then: its answer tells what it holds."""
    while True:
        busy = worker.called.is_set()
        due = min(worker.heard_at + (patience.busy_s if busy else patience.idle_s), asked_at + patience.idle_s)
        if due <= time.now():
            return
        await time.pause(due - time.now(), None if busy else worker.called)


async def _unanswered(worker: Watched, asked_at: float, patience: Patience, time: Time) -> str:
    """What is wrong with a worker that says nothing; empty as soon as it says something. Looks are counted and not the time, of
    which much passes at once when we ourselves were held up."""
    looks = 0
    while worker.heard_at < asked_at:
        condition = worker.condition()
        if condition is Condition.ENDING:
            return "its process is ending"
        if condition is Condition.STOPPED and looks:
            return "its process is stopped"
        if looks * patience.answer_s >= patience.hang_s and not worker.may_be_slow:
            return f"it has not answered for {patience.hang_s:g} s"
        await time.pause(patience.answer_s, worker.answered)
        looks += 1
    return ""


def _excess(worker: Watched) -> str:
    if worker.resident_bytes <= worker.limit_bytes:
        return ""
    return f"it holds {worker.resident_bytes / GB:.2f} GB, and its memory_gb is {worker.limit_bytes / GB:g}"


def condition(pid: int) -> Condition:
    """Of a process of this host."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return Condition.ENDING
    state, address_space_bytes = fields[0], fields[20]
    if state in "ZXx" or address_space_bytes == "0":
        return Condition.ENDING
    return Condition.STOPPED if state == "T" else Condition.RUNNING  # t: somebody debugs it, and will let it go on
