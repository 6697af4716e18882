"""Jobs of one process, in memory. Also the model that the Functions of Redis are tested against."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping

import msgspec

from sessions.store.admission_limits import DUE_AT_ONCE
from sessions.store.job_limits import check_job
from sessions.store.job_records import JobSeen, JobsFull, JobState, NewJob
from sessions.store.ordered_set import OrderedSet
from sessions.store.session_limits import checked_id

RUNNING = (JobState.QUEUED, JobState.IN_PROGRESS)


class _Job(msgspec.Struct):
    new: NewJob
    made_us: int
    state: JobState = JobState.QUEUED
    progress: int = 0
    ended_us: int | None = None
    until_us: int | None = None
    outcome: bytes = b""


class MemoryJobs:
    """A JobStore. `now_us` is the store's clock."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._jobs_clock_us = now_us
        self._jobs: dict[str, _Job] = {}
        self._jobs_due = OrderedSet()
        """When something becomes of each by itself: its lease ends, or the time for which it is kept."""

    async def post_job(self, job: NewJob, most: int, most_of_tenant: int) -> JobSeen | JobsFull:
        check_job(job)
        self._settle_jobs()
        known = self._jobs.get(job.job_id)
        if known is not None:
            if (known.new.tenant, known.new.node) != (job.tenant, job.node):
                raise ValueError(f"job id: expected a new one, got {job.job_id!r}, which is in use")
            return _seen(known)
        if len(self._ids_of(job.tenant)) >= most_of_tenant:
            return JobsFull(of_tenant=True)
        if len(self._jobs) >= most:
            return JobsFull(of_tenant=False)
        now_us = self._jobs_clock_us()
        made = self._jobs[job.job_id] = _Job(job, now_us)
        self._jobs_due.put(job.job_id, now_us + _us(job.lease_s))
        return _seen(made)

    async def report_jobs(self, node: str, progress: Mapping[str, int | None], lease_s: float) -> frozenset[str]:
        gone: set[str] = set()
        for job_id, percent in progress.items():
            job = self._running(job_id, node)
            if job is None:
                gone.add(job_id)
                continue
            if percent is not None:
                job.state, job.progress = JobState.IN_PROGRESS, percent
            self._jobs_due.put(job_id, self._jobs_clock_us() + _us(lease_s))
        return frozenset(gone)

    async def end_job(self, job_id: str, node: str, state: JobState, outcome: bytes) -> bool:
        job = self._running(job_id, node)
        if job is None:
            known = self._jobs.get(job_id)
            return known is not None and (known.new.node, known.state, known.outcome) == (node, state, outcome)
        self._end(job, state, outcome, self._jobs_clock_us())
        return True

    async def job(self, tenant: str, job_id: str) -> JobSeen | None:
        self._settle_jobs()
        job = self._jobs.get(checked_id(job_id))
        return _seen(job) if job is not None and job.new.tenant == tenant else None

    async def jobs(self, tenant: str, after: str, limit: int, *, newest_first: bool) -> tuple[JobSeen, ...]:
        self._settle_jobs()
        ids = self._ids_of(tenant)
        before = ids[: bisect_left(ids, after)] if after else ids
        found = before[::-1] if newest_first else ids[bisect_right(ids, after) :]
        return tuple(_seen(self._jobs[job_id]) for job_id in found[:limit])

    async def job_states(self, job_ids: Iterable[str]) -> Mapping[str, JobState]:
        self._settle_jobs()
        return {job_id: self._jobs[job_id].state for job_id in map(checked_id, job_ids) if job_id in self._jobs}

    async def remove_job(self, tenant: str, job_id: str) -> JobSeen | None:
        seen = await self.job(tenant, job_id)
        if seen is not None:
            self._drop(job_id)
        return seen

    def _running(self, job_id: str, node: str) -> _Job | None:
        job = self._jobs.get(checked_id(job_id))
        return job if job is not None and job.new.node == node and job.state in RUNNING else None

    def _ids_of(self, tenant: str) -> list[str]:
        return sorted(job_id for job_id, job in self._jobs.items() if job.new.tenant == tenant)

    def _settle_jobs(self) -> None:
        """What was to happen by now has happened."""
        for job_id in self._jobs_due.up_to(self._jobs_clock_us(), DUE_AT_ONCE):
            job, due_us = self._jobs[job_id], self._jobs_due.score(job_id)
            if job.state in RUNNING and due_us is not None:
                self._end(job, JobState.FAILED, b"", due_us)
            else:
                self._drop(job_id)

    def _end(self, job: _Job, state: JobState, outcome: bytes, at_us: int) -> None:
        job.state, job.outcome = state, outcome
        job.ended_us, job.until_us = at_us, at_us + _us(job.new.keep_s)
        self._jobs_due.put(job.new.job_id, job.until_us)

    def _drop(self, job_id: str) -> None:
        del self._jobs[job_id]
        self._jobs_due.discard(job_id)


def _seen(job: _Job) -> JobSeen:
    return JobSeen(
        job_id=job.new.job_id,
        tenant=job.new.tenant,
        node=job.new.node,
        state=job.state,
        progress=job.progress,
        made_at=job.made_us / 1e6,
        ended_at=None if job.ended_us is None else job.ended_us / 1e6,
        kept_until=None if job.until_us is None else job.until_us / 1e6,
        wish=job.new.wish,
        outcome=job.outcome,
    )


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
