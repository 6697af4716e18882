"""Whatever is asked of jobs, in whatever order: Redis answers as the model in memory does."""

import asyncio
from pathlib import Path
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.job_stores import TimedJobs, jobs_in_memory, jobs_in_redis
from fakes.redis_server import RedisServer
from fakes.session_stores import one_server
from sessions.store.job_records import JobState, NewJob

LEASE_S, KEEP_S = 10.0, 30.0
IDS, PARTIES = ("j1", "j2", "j3", "j4"), ("a", "b")
Step: TypeAlias = tuple[str, str, str, int]
"""What, of which job, by which tenant or node, and a number that means what it likes."""
STEPS = st.tuples(
    st.sampled_from(("post", "post", "report", "end", "look", "page", "states", "remove", "pass", "pass")),
    st.sampled_from(IDS),
    st.sampled_from(PARTIES),
    st.integers(0, 40),
)


async def answered(jobs: TimedJobs, step: Step) -> object:
    what, job_id, party, number = step
    store = jobs.store
    match what:
        case "post":
            new = NewJob(job_id=job_id, tenant=party, node=party, wish=bytes([number]), lease_s=LEASE_S, keep_s=KEEP_S)
            try:
                return await store.post_job(new, most=3, most_of_tenant=2)
            except ValueError as wrong:
                return str(wrong)
        case "report":
            return await store.report_jobs(party, dict.fromkeys(IDS[: 1 + number % 4], number or None), LEASE_S)
        case "end":
            state = JobState.COMPLETED if number % 2 else JobState.FAILED
            return await store.end_job(job_id, party, state, bytes(number % 3))
        case "look":
            return await store.job(party, job_id)
        case "page":
            return await store.jobs(party, job_id if number % 2 else "", 1 + number % 3, newest_first=number > 20)
        case "states":
            return await store.job_states(IDS)
        case "remove":
            return await store.remove_job(party, job_id)
        case _:
            return await jobs.pass_s(number / 2)


async def compare(server: RedisServer, steps: list[Step]) -> None:
    wire = one_server(("127.0.0.1", server.port))
    await wire.ask("FLUSHALL")
    await wire.close()
    model = jobs_in_memory()
    async with jobs_in_redis(server.url) as jobs:
        for step in [*steps, *(("look", job_id, party, 0) for job_id in IDS for party in PARTIES)]:
            assert await answered(jobs, step) == await answered(model, step), step


def test_both_answer_alike(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        server = RedisServer(tmp_path)
        runner.run(server.start())
        try:

            @settings(max_examples=80, deadline=None, database=None)
            @given(steps=st.lists(STEPS, min_size=5, max_size=60))
            def alike(steps: list[Step]) -> None:
                runner.run(compare(server, steps))

            alike()
        finally:
            runner.run(server.kill())
