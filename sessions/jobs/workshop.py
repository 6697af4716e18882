"""All jobs that this node works on: one tree of tasks, and the store hears how each goes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress

from sessions.admission.node import Node
from sessions.billing import Billing
from sessions.jobs.files import JobFiles
from sessions.jobs.film import DRAINING, INTERNAL, STOPPED, FilmMade, Outcome, packed
from sessions.jobs.labour import Labour
from sessions.jobs.work import Work
from sessions.store.interface import JobStore, StoreDown
from sessions.store.job_records import JobState
from sessions.store.settings import RENEWALS_IN_A_LEASE
from sessions.usage import FRAMES, REQUESTS

log = logging.getLogger(__name__)

REPORT_S = 1.0
"""At least so often other nodes learn how far a job is."""
LAST_WORDS_S = 2.0
"""For telling the store how jobs have ended, when the server ends."""
DELETED = "cancelled"
"""How a job ends that was deleted, as `ended` hears it."""


class Workshop:
    """`async with workshop.running()`. `ended` hears how each went: completed, failed, cancelled."""

    def __init__(
        self,
        store: JobStore,
        node: Node,
        billing: Billing,
        files: JobFiles,
        labour: Labour,
        ended: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._node = node
        self._billing = billing
        self._files = files
        self._labour = labour
        self._ended = ended
        self._sleep = sleep
        self._works: dict[str, Work] = {}
        """Those that are not over. Who posts jobs bounds them."""
        self._busy = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """When the block ends, what is not over has failed, as far as the store can be told."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            reporting = tasks.create_task(self._keep_reporting())
            try:
                yield
            finally:
                reporting.cancel()
                await self._stop_all()
                self._tasks = None

    @property
    def upload_bytes(self) -> int:
        """In memory."""
        return sum(work.upload_bytes for work in self._works.values())

    def begin(self, work: Work) -> None:
        """Its lease has begun in the store."""
        self._works[work.job_id] = work
        self._busy.set()
        work.task = self._later(self._carry_out(work))

    def progress(self, job_id: str) -> int | None:
        """Of one that is worked on here, in per cent."""
        work = self._works.get(job_id)
        return None if work is None else work.progress

    async def forget(self, job_id: str) -> None:
        """It has been deleted: it stops, and nothing is left of it here."""
        work = self._works.get(job_id)
        if work is not None:
            work.is_forgotten = True
            work.stop(STOPPED)
            await work.over.wait()
        await self._delete_film(job_id)

    def forget_soon(self, job_id: str) -> None:
        self._later(self.forget(job_id))

    async def drain(self, limit_s: float) -> None:
        """What waits has failed; what has begun gets so long to come to its end."""
        for work in self._works.values():
            if work.progress is None:
                work.stop(DRAINING)
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await _until_over(self._works.values())

    def _later(self, work: Coroutine[None, None, None]) -> asyncio.Task[None] | None:
        if self._tasks is None:
            work.close()  # the server is ending, or has not begun
            return None
        return self._tasks.create_task(work)

    async def _carry_out(self, work: Work) -> None:
        try:
            outcome = await self._outcome(work)
            if work.is_forgotten:
                self._ended(DELETED)
            else:
                await self._end(work, outcome)
        finally:
            del self._works[work.job_id]
            work.over.set()

    async def _outcome(self, work: Work) -> Outcome:
        """What nobody has foreseen ends this job alone."""
        labour = work.labour = asyncio.create_task(self._labour.make(work))
        if work.is_stopped:
            labour.cancel()
        try:
            await asyncio.wait((labour,))
        finally:
            if labour.cancel():
                await asyncio.wait((labour,))
        if labour.cancelled():
            return work.verdict or STOPPED
        if (failure := labour.exception()) is not None:
            log.error("job %s has failed in an unexpected way", work.job_id, exc_info=failure)
            return INTERNAL
        return labour.result()

    async def _end(self, work: Work, outcome: Outcome) -> None:
        work.is_ending = True
        state = JobState.COMPLETED if isinstance(outcome, FilmMade) else JobState.FAILED
        if not await self._told_the_end(work.job_id, state, packed(outcome)):
            log.info("job %s is over, and nobody waits for it any more", work.job_id)
            await self._delete_film(work.job_id)
            return self._ended(DELETED)
        if isinstance(outcome, FilmMade):
            self._billing.add(work.principal.tenant, {FRAMES: outcome.frames, REQUESTS: 1})
        else:
            log.info("job %s has failed: %s", work.job_id, outcome.message)
        return self._ended(state.value)

    async def _told_the_end(self, job_id: str, state: JobState, outcome: bytes) -> bool:
        """A store that is down is waited for."""
        while True:
            try:
                return await self._store.end_job(job_id, self._node.identity.node, state, outcome)
            except StoreDown as down:
                log.info("how job %s has ended is told later: %s", job_id, down)
                await self._sleep(down.retry_after_s)

    async def _delete_film(self, job_id: str) -> None:
        try:
            await self._files.delete(job_id)
        except OSError as kept:
            log.error("the film of job %s cannot be deleted now: %s", job_id, kept)

    async def _keep_reporting(self) -> None:
        every_s = min(REPORT_S, self._node.leases.lease_s / RENEWALS_IN_A_LEASE)
        while True:
            await self._busy.wait()
            await self._sleep(every_s)
            if self._works:
                await self._report()
            else:
                self._busy.clear()

    async def _report(self) -> None:
        progress = {job_id: work.progress for job_id, work in self._works.items()}
        try:
            gone = await self._store.report_jobs(self._node.identity.node, progress, self._node.leases.lease_s)
        except StoreDown as down:
            log.info("how far jobs are is told later: %s", down)
            return
        for job_id in gone:
            if (work := self._works.get(job_id)) is not None and not work.is_ending:
                self.forget_soon(job_id)

    async def _stop_all(self) -> None:
        works = tuple(self._works.values())
        for work in works:
            work.stop(STOPPED)
        with suppress(TimeoutError):  # then the store is down, and their leases tell of the end
            async with asyncio.timeout(LAST_WORDS_S):
                return await _until_over(works)
        for work in works:
            if work.task is not None:
                work.task.cancel()
        return await _until_over(works)


async def _until_over(works: Iterable[Work]) -> None:
    for work in tuple(works):
        await work.over.wait()
