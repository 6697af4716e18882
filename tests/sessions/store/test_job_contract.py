"""What every store of jobs does: who works on a job, how far it is, who sees it, and when it ends by itself."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fakes.job_stores import TimedJobs, jobs_in_memory, jobs_in_redis
from fakes.redis_cluster import RedisCluster
from fakes.redis_server import running_redis
from fakes.store_time import START_US
from sessions.store.job_limits import WISH_BYTES
from sessions.store.job_records import JobSeen, JobsFull, JobState, NewJob

LEASE_S, KEEP_S = 10.0, 100.0
START_S = START_US / 1e6


def new(job_id: str = "j1", tenant: str = "t", node: str = "a", wish: bytes = b"wish\0\xff", keep_s: float = KEEP_S) -> NewJob:
    return NewJob(job_id=job_id, tenant=tenant, node=node, wish=wish, lease_s=LEASE_S, keep_s=keep_s)


async def posted(jobs: TimedJobs, job: NewJob, most: int = 100, most_of_tenant: int = 100) -> JobSeen:
    seen = await jobs.store.post_job(job, most, most_of_tenant)
    assert isinstance(seen, JobSeen)
    return seen


async def look(jobs: TimedJobs, job_id: str = "j1", tenant: str = "t") -> JobSeen:
    seen = await jobs.store.job(tenant, job_id)
    assert seen is not None
    return seen


async def ids(jobs: TimedJobs, tenant: str = "t", after: str = "", limit: int = 100, *, newest_first: bool = True) -> list[str]:
    return [seen.job_id for seen in await jobs.store.jobs(tenant, after, limit, newest_first=newest_first)]


@pytest.fixture
def in_memory() -> TimedJobs:
    return jobs_in_memory()


@pytest.fixture
async def in_redis(tmp_path: Path) -> AsyncGenerator[TimedJobs]:
    async with running_redis(tmp_path) as server, jobs_in_redis(server.url) as jobs:
        yield jobs


@pytest.fixture
async def in_cluster(cluster: RedisCluster) -> AsyncGenerator[TimedJobs]:
    for number in range(len(cluster.servers)):
        await cluster.ask(number, "FLUSHALL")
    async with jobs_in_redis(cluster.url) as jobs:
        yield jobs


@pytest.fixture(params=["in_memory", "in_redis", pytest.param("in_cluster", marks=pytest.mark.full)])
def jobs(request: pytest.FixtureRequest) -> TimedJobs:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, TimedJobs)
    return found


async def test_a_job_waits_goes_on_and_ends(jobs: TimedJobs):
    first = await posted(jobs, new())
    assert first == JobSeen(
        job_id="j1",
        tenant="t",
        node="a",
        state=JobState.QUEUED,
        progress=0,
        made_at=START_S,
        ended_at=None,
        kept_until=None,
        wish=b"wish\0\xff",
        outcome=b"",
    )
    assert await jobs.store.report_jobs("a", {"j1": None}, LEASE_S) == frozenset()
    assert (await look(jobs)).state is JobState.QUEUED
    await jobs.store.report_jobs("a", {"j1": 40}, LEASE_S)
    under_way = await look(jobs)
    assert (under_way.state, under_way.progress) == (JobState.IN_PROGRESS, 40)
    await jobs.pass_s(2)
    assert await jobs.store.end_job("j1", "a", JobState.COMPLETED, b"made\0")
    done = await look(jobs)
    assert (done.state, done.outcome) == (JobState.COMPLETED, b"made\0")
    assert (done.made_at, done.ended_at, done.kept_until) == (START_S, START_S + 2, START_S + 2 + KEEP_S)


async def test_a_post_and_an_end_that_are_repeated_are_answered_the_same(jobs: TimedJobs):
    first = await posted(jobs, new())
    await jobs.pass_s(1)
    assert await posted(jobs, new(), most=1, most_of_tenant=1) == first
    for _ in range(2):
        assert await jobs.store.end_job("j1", "a", JobState.FAILED, b"why")
    assert not await jobs.store.end_job("j1", "a", JobState.COMPLETED, b"made")
    assert (await look(jobs)).state is JobState.FAILED


@pytest.mark.parametrize("other", [new(tenant="other"), new(node="b")])
async def test_an_id_in_use_is_refused(jobs: TimedJobs, other: NewJob):
    await posted(jobs, new())
    with pytest.raises(ValueError, match="in use"):
        await posted(jobs, other)


async def test_only_its_node_reports_and_ends_it(jobs: TimedJobs):
    await posted(jobs, new())
    assert await jobs.store.report_jobs("b", {"j1": 50}, LEASE_S) == {"j1"}
    assert not await jobs.store.end_job("j1", "b", JobState.COMPLETED, b"")
    assert (await look(jobs)).state is JobState.QUEUED


async def test_a_job_whose_node_falls_silent_has_failed_without_a_word(jobs: TimedJobs):
    await posted(jobs, new())
    await jobs.pass_s(LEASE_S / 2)
    await jobs.store.report_jobs("a", {"j1": 50}, LEASE_S)
    await jobs.pass_s(LEASE_S)
    lost = await look(jobs)
    assert (lost.state, lost.outcome, lost.progress) == (JobState.FAILED, b"", 50)
    assert lost.ended_at == START_S + 1.5 * LEASE_S
    assert await jobs.store.report_jobs("a", {"j1": 60}, LEASE_S) == {"j1"}
    assert not await jobs.store.end_job("j1", "a", JobState.COMPLETED, b"made")


async def test_who_reports_late_and_was_not_missed_goes_on(jobs: TimedJobs):
    """A store that did not answer for longer than a lease has told nobody that the job was lost."""
    await posted(jobs, new())
    await jobs.pass_s(3 * LEASE_S)
    assert await jobs.store.report_jobs("a", {"j1": 50}, LEASE_S) == frozenset()
    assert (await look(jobs)).state is JobState.IN_PROGRESS
    await jobs.pass_s(3 * LEASE_S)
    assert await jobs.store.end_job("j1", "a", JobState.COMPLETED, b"made")


async def test_what_is_over_is_kept_for_a_while(jobs: TimedJobs):
    await posted(jobs, new())
    await posted(jobs, new("j2", keep_s=1))
    for job_id in ("j1", "j2"):
        await jobs.store.end_job(job_id, "a", JobState.COMPLETED, b"")
    await jobs.pass_s(1)
    assert await ids(jobs) == ["j1"]
    await jobs.pass_s(KEEP_S)
    assert await ids(jobs) == []
    assert await jobs.store.job("t", "j1") is None


async def test_a_silent_nodes_job_goes_too_in_the_end(jobs: TimedJobs):
    await posted(jobs, new())
    await jobs.pass_s(LEASE_S + KEEP_S)
    assert (await look(jobs)).state is JobState.FAILED  # told once more at least
    await jobs.pass_s(1)
    assert await jobs.store.job("t", "j1") is None


async def test_jobs_are_seen_by_their_tenant_alone(jobs: TimedJobs):
    await posted(jobs, new("j1", tenant="t"))
    await posted(jobs, new("j2", tenant="t2"))
    assert await jobs.store.job("t2", "j1") is None
    assert await jobs.store.remove_job("t2", "j1") is None
    assert (await ids(jobs, "t"), await ids(jobs, "t2"), await ids(jobs, "")) == (["j1"], ["j2"], [])
    assert (await look(jobs)).tenant == "t"


async def test_pages_in_both_orders(jobs: TimedJobs):
    for number in (3, 1, 5, 2, 4):
        await posted(jobs, new(f"j{number}"))
    await posted(jobs, new("j25", tenant="t\1"))
    assert await ids(jobs) == ["j5", "j4", "j3", "j2", "j1"]
    assert await ids(jobs, limit=2) == ["j5", "j4"]
    assert await ids(jobs, after="j4", limit=2) == ["j3", "j2"]
    assert await ids(jobs, after="j25") == ["j2", "j1"], "one that is not there, or no longer"
    assert await ids(jobs, newest_first=False) == ["j1", "j2", "j3", "j4", "j5"]
    assert await ids(jobs, after="j3", newest_first=False) == ["j4", "j5"]


async def test_so_many_and_no_more(jobs: TimedJobs):
    for job_id, tenant in (("j1", "t"), ("j2", "t"), ("j3", "u")):
        await posted(jobs, new(job_id, tenant), most=3, most_of_tenant=2)
    assert await jobs.store.post_job(new("j4"), 3, 2) == JobsFull(of_tenant=True)
    assert await jobs.store.post_job(new("j4", "u"), 3, 2) == JobsFull(of_tenant=False)
    await jobs.store.remove_job("t", "j1")
    await posted(jobs, new("j4"), most=3, most_of_tenant=2)


async def test_what_was_removed_is_gone_and_its_node_hears_of_it(jobs: TimedJobs):
    seen = await posted(jobs, new())
    assert await jobs.store.remove_job("t", "j1") == seen
    assert await jobs.store.remove_job("t", "j1") is None
    assert await jobs.store.report_jobs("a", {"j1": 50}, LEASE_S) == {"j1"}
    assert not await jobs.store.end_job("j1", "a", JobState.COMPLETED, b"")
    assert await ids(jobs) == []


async def test_states_of_those_that_there_are(jobs: TimedJobs):
    await posted(jobs, new("j1"))
    await posted(jobs, new("j2", "u"))
    await jobs.store.end_job("j2", "a", JobState.COMPLETED, b"")
    states = await jobs.store.job_states(["j1", "j2", "j3"])
    assert states == {"j1": JobState.QUEUED, "j2": JobState.COMPLETED}
    assert await jobs.store.job_states([]) == {}


@pytest.mark.parametrize("job_id", ["", "a}b", "{a", "a\0b", "a" * 65, "ä", "a b"])
async def test_ids_that_could_be_something_else_are_refused(jobs: TimedJobs, job_id: str):
    with pytest.raises(ValueError, match="id"):
        await jobs.store.post_job(new(job_id), 9, 9)
    with pytest.raises(ValueError, match="id"):
        await jobs.store.job("t", job_id)


async def test_a_wish_beyond_all_bounds_is_refused(jobs: TimedJobs):
    with pytest.raises(ValueError, match="wish"):
        await jobs.store.post_job(new(wish=bytes(WISH_BYTES + 1)), 9, 9)
