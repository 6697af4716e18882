"""Films as jobs of several nodes: who works, who tells, what stops them, and what is left."""

import asyncio
from pathlib import Path

import pytest

from engines.messages.to_gateway import ErrorKind
from fakes.studio import LEASE_S, WISH, Studio, Studios, someone
from sessions.jobs.film import DRAINING, INTERNAL, NO_ROOM, NODE_LOST, STOPPED, FilmMade, JobFault, outcome_of, wish_of
from sessions.jobs.jobs import HELD_BYTES, NoMoreJobs
from sessions.store.interface import StoreDown
from sessions.store.job_records import JobState

QUEUED, IN_PROGRESS, COMPLETED, FAILED = JobState.QUEUED, JobState.IN_PROGRESS, JobState.COMPLETED, JobState.FAILED


@pytest.fixture
def studios(tmp_path: Path) -> Studios:
    return Studios(tmp_path)


async def begun(studio: Studio) -> str:
    """A job that has told of its first step, and waits there."""
    gate = studio.graph.hold("video")
    job_id = await studio.ask()
    gate.step()
    await studio.seen(job_id, IN_PROGRESS, progress=25)
    return job_id


async def test_a_job_is_made_kept_and_billed(studios: Studios):
    async with studios.studio() as studio:
        job_id = await studio.ask()
        seen = await studio.seen(job_id, COMPLETED)
        made = outcome_of(seen)
        assert isinstance(made, FilmMade)
        assert wish_of(seen) == WISH
        path = await studio.jobs.files.find("host", made.file)
        assert path is not None
        assert (made.frames, made.width, made.height, made.size_bytes) == (3, 32, 32, path.stat().st_size)
    assert await studios.store.bills() == {"t": {"frames": 3, "requests": 1}}


async def test_nobody_else_sees_it(studios: Studios):
    async with studios.studio() as studio:
        job_id = await studio.ask()
        assert await studio.jobs.look("other", job_id) is None
        assert not await studio.jobs.remove("other", job_id)
        assert await studio.jobs.page("other", "", 10, newest_first=True) == ()
        await studio.seen(job_id, COMPLETED)


# ── several nodes


async def test_another_node_tells_how_far_it_is_and_serves_the_film(studios: Studios):
    async with studios.studio("a") as a, studios.studio("b") as b:
        job_id = await begun(a)
        await b.seen(job_id, IN_PROGRESS, progress=25)
        a.graph.hold("video").release()
        made = outcome_of(await b.seen(job_id, COMPLETED))
        assert isinstance(made, FilmMade)
        assert await b.jobs.files.find(made.host, made.file) is not None


async def test_a_host_that_does_not_see_the_film_has_none(studios: Studios):
    async with studios.studio("a", folder="one") as a, studios.studio("b", host="far", folder="two") as b:
        job_id = await a.ask()
        made = outcome_of(await b.seen(job_id, COMPLETED))
        assert isinstance(made, FilmMade)
        assert await b.jobs.files.find(made.host, made.file) is None


async def test_deleted_at_another_node_it_stops(studios: Studios):
    async with studios.studio("a") as a, studios.studio("b", host="far") as b:
        job_id = await begun(a)
        assert await b.jobs.remove("t", job_id)
        await a.graph.wait_for(lambda: a.graph.aborted == [job_id])
        await studios.nothing_left()
        assert await a.jobs.look("t", job_id) is None


async def test_a_word_of_its_deletion_that_is_lost_is_heard_at_the_next_report(studios: Studios):
    async with studios.studio("a") as a:
        job_id = await begun(a)
        await studios.store.remove_job("t", job_id)
        await a.graph.wait_for(lambda: a.graph.aborted == [job_id])
        await studios.nothing_left()


async def test_a_node_that_is_cut_off_has_lost_its_job(studios: Studios):
    """As one that has died, for everybody else; when it is back it stops."""
    async with studios.studio("a") as a, studios.studio("b") as b:
        job_id = await begun(a)
        studios.store.cut.add("a")
        studios.time.step(LEASE_S + 1)
        assert outcome_of(await b.seen(job_id, FAILED)) == NODE_LOST
        studios.store.cut.clear()
        await a.graph.wait_for(lambda: a.graph.aborted == [job_id])
        assert outcome_of(await b.seen(job_id, FAILED)) == NODE_LOST


async def test_an_end_that_could_not_be_told_is_told_later(studios: Studios):
    async with studios.studio("a") as a:
        job_id = await begun(a)
        studios.store.cut.add("a")
        a.graph.hold("video").release()
        await a.graph.wait_for(lambda: a.graph.open_requests == 0)
        studios.time.step(LEASE_S + 1)
        studios.store.cut.clear()
        async with asyncio.timeout(5):
            while not await studios.store.bills():  # noqa: ASYNC110 (who looked for the job now would find it lost)
                await asyncio.sleep(0.005)
        await a.seen(job_id, COMPLETED)


async def test_a_film_that_came_too_late_is_nobodys(studios: Studios):
    async with studios.studio("a") as a:
        job_id = await begun(a)
        studios.store.cut.add("a")
        studios.time.step(LEASE_S + 1)
        assert await studios.store.job("t", job_id) is not None  # and has been found lost
        a.graph.hold("video").release()
        await a.graph.wait_for(lambda: a.graph.open_requests == 0)
        assert studios.films()
        studios.store.cut.clear()
        await studios.nothing_left()
        assert outcome_of(await a.seen(job_id, FAILED)) == NODE_LOST


async def test_a_node_tells_of_its_own_jobs_at_once(studios: Studios):
    async with studios.studio("a") as a:
        gate = a.graph.hold("video")
        job_id = await a.ask()
        studios.store.cut.add("a")
        gate.step()
        await a.seen(job_id, IN_PROGRESS, progress=25)
        seen = await studios.store.job("t", job_id)
        assert seen is not None
        assert seen.progress == 0, "nobody else knows yet"
        studios.store.cut.clear()


# ── the end of the server


async def test_the_servers_end_fails_what_goes_on(studios: Studios):
    async with studios.studio("a") as a:
        job_id = await begun(a)
    seen = await studios.store.job("t", job_id)
    assert seen is not None
    assert outcome_of(seen) == STOPPED
    assert (a.graph.aborted, studios.films()) == ([job_id], [])


async def test_a_drain_waits_for_what_has_begun(studios: Studios):
    async with studios.studio("a", at_once=1) as a:
        job_id, waiting = await begun(a), await a.ask()
        draining = asyncio.create_task(a.jobs.drain(10.0))
        assert outcome_of(await a.seen(waiting, FAILED)) == DRAINING
        assert not draining.done()
        a.graph.hold("video").release()
        await draining
        await a.seen(job_id, COMPLETED)


async def test_a_drain_has_an_end(studios: Studios):
    async with studios.studio("a") as a:
        job_id = await begun(a)
        await a.jobs.drain(0.01)
        await a.seen(job_id, IN_PROGRESS)


async def test_a_server_whose_store_is_down_ends_all_the_same(studios: Studios, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sessions.jobs.workshop.LAST_WORDS_S", 0.05)
    async with studios.studio("a") as a:
        job_id = await begun(a)
        studios.store.cut.add("a")
    studios.time.step(LEASE_S + 1)
    seen = await studios.store.job("t", job_id)
    assert seen is not None
    assert outcome_of(seen) == NODE_LOST


# ── what goes wrong


async def test_engines_that_are_full_are_asked_again(studios: Studios):
    async with studios.studio() as studio:
        for kind in (ErrorKind.OVERLOADED, ErrorKind.REPLICA_LOST):
            studio.graph.fail_submit("painter", kind)
            await studio.seen(await studio.ask(), COMPLETED)


async def test_a_painter_that_dies_in_mid_film_fails_it(studios: Studios):
    async with studios.studio() as studio:
        job_id = await begun(studio)
        studio.graph.lose("painter")
        fault = outcome_of(await studio.seen(job_id, FAILED))
        assert isinstance(fault, JobFault)
        assert (fault.code, fault.stage) == ("replica_lost", "painter")
        assert not studios.films()


async def test_what_nobody_has_foreseen_ends_one_job_alone(
    studios: Studios, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with studios.studio() as studio:
        with monkeypatch.context() as broken:
            broken.setattr("sessions.jobs.labour.film", None)
            assert outcome_of(await studio.seen(await studio.ask(), FAILED)) == INTERNAL
        assert "unexpected" in caplog.text
        await studio.seen(await studio.ask(), COMPLETED)


async def test_a_film_that_does_not_fit_is_not_kept(studios: Studios):
    async with studios.studio(most_bytes=100) as studio:
        assert outcome_of(await studio.seen(await studio.ask(), FAILED)) == NO_ROOM
        assert not studios.films()
    async with studios.studio(most_bytes=4_000) as studio:
        await studio.seen(await studio.ask(), COMPLETED)
    async with studios.studio(most_bytes=1_000) as studio:
        with pytest.raises(NoMoreJobs, match="no room"):
            await studio.ask()


async def test_so_many_are_kept_of_a_tenant_and_of_all(studios: Studios):
    async with studios.studio(most=3, most_of_tenant=2) as studio:
        for tenant in ("t", "t", "u"):
            await studio.ask(tenant)
        with pytest.raises(NoMoreJobs, match="delete some") as full:
            await studio.ask("t")
        assert full.value.of_tenant
        with pytest.raises(NoMoreJobs, match="the server keeps") as full:
            await studio.ask("u")
        assert not full.value.of_tenant


async def test_uploads_that_wait_are_bounded(studios: Studios):
    async with studios.studio() as studio:
        with pytest.raises(NoMoreJobs, match="pictures wait"):
            await studio.ask(uploads={"image": bytes(HELD_BYTES + 1)})
        studio.graph.hold("video")
        half = {"image": bytes(HELD_BYTES // 2)}
        asked = await asyncio.gather(*(studio.ask(uploads=half) for _ in range(3)), return_exceptions=True)
        assert [isinstance(each, NoMoreJobs) for each in asked] == [False, False, True], "also those that come at once"
        first, second = (each for each in asked if isinstance(each, str))
        assert await studio.jobs.remove("t", first)
        await studio.ask(uploads=half)
        assert await studio.jobs.remove("t", second)


async def test_a_post_that_nobody_waits_for_leaves_nothing(studios: Studios):
    async with studios.studio() as studio:
        studios.store.is_late = True
        asking = asyncio.create_task(studio.jobs.create(someone(), WISH, {}))
        await studios.store.late.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await studio.jobs.page("t", "", 10, newest_first=True) == ()


async def test_a_store_that_is_down_takes_no_job(studios: Studios):
    async with studios.studio("a") as studio:
        studios.store.cut.add("a")
        with pytest.raises(StoreDown):
            await studio.ask()


# ── what is left


async def test_films_are_deleted_with_their_jobs(studios: Studios):
    async with studios.studio() as studio:
        await studio.seen(await studio.ask(), COMPLETED)
        studios.time.step(99.0)
        assert len(await studio.jobs.page("t", "", 10, newest_first=True)) == 1
        studios.time.step(2.0)
        await studios.nothing_left()


async def test_jobs_of_many_come_and_go_and_nothing_is_left(studios: Studios):
    async with studios.studio(at_once=3) as studio:
        ids = [await studio.ask(f"t{number % 3}") for number in range(12)]
        for number, job_id in enumerate(ids):
            tenant = f"t{number % 3}"
            if number % 2:
                await studio.seen(job_id, COMPLETED, tenant=tenant)
            assert await studio.jobs.remove(tenant, job_id)
        assert (studio.graph.open_requests, studios.films()) == (0, [])
        assert (await studios.store.census()).active == 0
