"""A seat lives as long as its session, and a session as long as somebody may come back to it."""

import asyncio

import pytest

from engines import logs
from engines.requests import Request
from fakes.graph import FakeGraph, FakeStream, tone
from fakes.house import House, house
from fakes.voice_client import config, settle
from sessions.admission.admission import NotAdmitted
from sessions.states import State
from sessions.voice.commands import AppendAudio
from sessions.voice.config import SemanticVad


async def free_seats(world: House) -> float:
    sessions = (await world.store.census()).resources["node:house:sessions"]
    return sessions.capacity - sessions.used


async def test_seat_and_requests_are_given_back() -> None:
    async with house(seats=1) as world:
        async with world.sessions.open(config(SemanticVad())) as attached:
            await settle()
            assert world.graph.of("vad")[0].fence == attached.fence
            assert world.states() == [State.ACTIVE]
            with pytest.raises(NotAdmitted):
                await world.sessions.open(config()).__aenter__()
            attached.leave()
        assert (await free_seats(world), world.graph.open_requests) == (1, 0)
        assert await world.store.look(attached.session_id) is None


async def test_what_the_session_logs_is_about_it() -> None:
    class Listening(FakeGraph):
        async def submit(self, request: Request) -> FakeStream:
            heard.add(logs.session_id.get())
            return await super().submit(request)

    heard: set[str] = set()
    async with house(graph=Listening()) as world, world.sessions.open(config(SemanticVad())) as attached:
        await settle()
        assert heard == {attached.session_id} == {logs.session_id.get()}
    assert logs.session_id.get() == ""


async def test_a_transport_that_breaks_leaves_its_session_and_a_newcomer_takes_the_seat() -> None:
    tokens: list[str] = []

    async def break_down() -> None:
        async with world.sessions.open(config(SemanticVad())) as attached:
            tokens.append(attached.token)
            raise ConnectionError("socket gone")

    async with house(seats=1) as world:
        with pytest.raises(ConnectionError, match="socket gone"):
            await break_down()
        await settle()
        assert world.states() == [State.DETACHED]
        async with world.sessions.open(config()) as newcomer:
            await settle()
            assert [info.session_id for info in world.sessions.sessions()] == [newcomer.session_id]
            with pytest.raises(NotAdmitted):
                await world.sessions.resume(tokens[0]).__aenter__()


async def test_a_session_outlives_the_task_that_was_cancelled() -> None:
    async def hold() -> None:
        async with world.sessions.open(config(SemanticVad())) as attached:
            tokens.append(attached.token)
            await asyncio.Event().wait()

    tokens: list[str] = []
    async with house(seats=1) as world:
        holding = asyncio.create_task(hold())
        await settle()
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holding
        async with world.sessions.resume(tokens[0]) as attached:
            attached.leave()
        assert await free_seats(world) == 1


async def test_an_open_that_is_cancelled_half_way_leaks_nothing() -> None:
    async with house(seats=1) as world:
        for turns in range(100):
            opening = asyncio.create_task(world.sessions.open(config(SemanticVad())).__aenter__())
            for _ in range(turns % 13):
                await asyncio.sleep(0)
            opening.cancel()
            await asyncio.wait([opening])
            del opening
            await settle()
            assert len(world.sessions.sessions()) <= 1
    assert (await world.store.census()).active == 0


async def test_a_session_that_breaks_fails_its_transport_and_frees_its_seat() -> None:
    async def talk() -> None:
        async with world.sessions.open(config(SemanticVad())) as attached:
            await settle()
            world.graph.pushed.clear()  # the fake's own bookkeeping breaks at the next push
            await attached.handle(AppendAudio(tone(500)))
            assert [type(event).__name__ async for event in attached.events()] == ["Opened"]

    async with house(seats=1) as world:
        with pytest.raises(ExceptionGroup):
            await talk()
        assert await free_seats(world) == 1


async def test_a_session_that_breaks_while_nobody_is_there_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with house(seats=1) as world:
        world.graph.transcripts.clear()  # the fake breaks at the first transcript, which comes when the client has gone
        async with world.sessions.open(config(SemanticVad())) as attached:
            await settle()
            await attached.handle(AppendAudio(tone(500)))
            await settle()
        await settle()
        assert await free_seats(world) == 1
    assert "failed while nobody was connected" in caplog.text


async def test_a_snapshot_that_cannot_be_deleted_is_logged_and_breaks_no_session(caplog: pytest.LogCaptureFixture) -> None:
    async def forget(session_id: str) -> None:
        raise PermissionError(13, "Permission denied", f"/snapshots/{session_id}")

    async with house(seats=1) as world:
        world.snapshots.forget = forget  # a directory that has become read-only
        async with world.sessions.open(config(SemanticVad())) as attached:
            await settle()
            attached.leave()
        assert f"/snapshots/{attached.session_id}" in caplog.text
        assert await free_seats(world) == 1
        assert await world.store.look(attached.session_id) is None
