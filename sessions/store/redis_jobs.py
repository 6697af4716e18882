"""Jobs in Redis: each method is one Function, in functions/jobs.lua."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sessions.store.connection import Argument, StoreConnection
from sessions.store.job_limits import check_job
from sessions.store.job_records import JobSeen, JobsFull, JobState, NewJob
from sessions.store.keys import JOBS
from sessions.store.replies import understood
from sessions.store.session_limits import checked_id
from sessions.store.wire import Reply

_Seen: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]


class RedisJobs:
    """A JobStore."""

    def __init__(self, connection: StoreConnection) -> None:
        self._connection = connection

    async def post_job(self, job: NewJob, most: int, most_of_tenant: int) -> JobSeen | JobsFull:
        check_job(job)
        times = (_us(job.lease_s), _us(job.keep_s))
        reply = await self._ask_jobs("job_post", (job.job_id, job.tenant, job.node, job.wish, *times, most, most_of_tenant))
        match reply:
            case [b"in use"]:
                raise ValueError(f"job id: expected a new one, got {job.job_id!r}, which is in use")
            case [(b"full" | b"tenant full") as which]:
                return JobsFull(of_tenant=which == b"tenant full")
            case _:
                return _seen(reply)

    async def report_jobs(self, node: str, progress: Mapping[str, int | None], lease_s: float) -> frozenset[str]:
        reports: list[Argument] = []
        for job_id, percent in progress.items():
            reports += [checked_id(job_id), "" if percent is None else percent]
        gone = understood(await self._ask_jobs("job_report", (node, _us(lease_s), *reports)), list[bytes])
        return frozenset(job_id.decode() for job_id in gone)

    async def end_job(self, job_id: str, node: str, state: JobState, outcome: bytes) -> bool:
        return await self._ask_jobs("job_end", (checked_id(job_id), node, state, outcome)) == 1

    async def job(self, tenant: str, job_id: str) -> JobSeen | None:
        reply = await self._ask_jobs("job_look", (tenant, checked_id(job_id)))
        return _seen(reply) if reply else None

    async def jobs(self, tenant: str, after: str, limit: int, *, newest_first: bool) -> tuple[JobSeen, ...]:
        reply = await self._ask_jobs("job_page", (tenant, after, limit, int(newest_first)))
        return tuple(_seen(each) for each in understood(reply, list[object]))

    async def job_states(self, job_ids: Iterable[str]) -> Mapping[str, JobState]:
        flat = understood(await self._ask_jobs("job_states", tuple(map(checked_id, job_ids))), list[bytes])
        return {name.decode(): JobState(state.decode()) for name, state in zip(flat[::2], flat[1::2], strict=True)}

    async def remove_job(self, tenant: str, job_id: str) -> JobSeen | None:
        reply = await self._ask_jobs("job_remove", (tenant, checked_id(job_id)))
        return _seen(reply) if reply else None

    async def _ask_jobs(self, function: str, arguments: Sequence[Argument]) -> Reply:
        return await self._connection.call(function, (JOBS,), arguments)


def _seen(reply: object) -> JobSeen:
    """Raises StoreDown when it is something else."""
    job_id, tenant, node, state, progress, made, ended, until, wish, outcome = _fields(reply)
    return JobSeen(
        job_id=job_id.decode(),
        tenant=tenant.decode(),
        node=node.decode(),
        state=JobState(state.decode()),
        progress=int(progress),
        made_at=int(made) / 1e6,
        ended_at=int(ended) / 1e6 if ended else None,
        kept_until=int(until) / 1e6 if until else None,
        wish=wish,
        outcome=outcome,
    )


def _fields(reply: object) -> _Seen:
    return understood(reply, _Seen)


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
