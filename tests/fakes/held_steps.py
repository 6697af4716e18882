"""A DIFFUSION model whose calls wait for the test, and which tells of everything that is done with it."""

import asyncio
import threading
from collections.abc import Sequence

from engines.models import Produced
from engines.parameters import Parameters
from engines.payloads import Payload
from fakes.step_counter import Account, Count, StepCounter


class HeldSteps(StepCounter):
    """`calls` lists the texts of every call. `hold` makes calls wait until `release`; `let` lets that many of them pass."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.calls: list[list[str]] = []
        self.abandoned: list[str] = []
        self.abandoned_too_late: list[str] = []
        self._open: list[Account] = []
        self.opened = self.closed = 0
        self.threads: set[str] = set()
        self._loop = loop
        self._began: asyncio.Queue[list[str]] = asyncio.Queue()
        self._held = False
        self._permits = threading.Semaphore(0)

    def hold(self) -> None:
        self._held = True

    def let(self, calls: int = 1) -> None:
        self._permits.release(calls)

    def release(self) -> None:
        """Calls that wait, and all that come."""
        self._held = False
        self._permits.release(1)

    async def call_begins(self) -> list[str]:
        """The texts of the next call, as soon as it has begun."""
        return await self._began.get()

    def open(self, parameters: Parameters) -> Account:
        state = super().open(parameters)
        self.opened += 1
        self._open.append(state)
        return state

    def begin(self, state: Account, payload: Payload) -> Count:
        self.threads.add(threading.current_thread().name)
        return super().begin(state, payload)

    def advance(self, jobs: Sequence[Count]) -> list[list[Produced] | Exception]:
        texts = [job.text for job in jobs]
        self.calls.append(texts)
        self._loop.call_soon_threadsafe(self._began.put_nowait, texts)
        if self._held:
            self._permits.acquire()
        return super().advance(jobs)

    def abandon(self, job: Count) -> None:
        is_open = any(state is job.account for state in self._open)
        (self.abandoned if is_open else self.abandoned_too_late).append(job.text)

    def close(self, state: Account) -> None:
        self.closed += 1
        self._open = [other for other in self._open if other is not state]
