"""A seat lives as long as its session, and a session as long as somebody may come back to it."""

import asyncio

import pytest

from engines import logs
from engines.requests import Request
from fakes.graph import FakeGraph, FakeStream, tone
from fakes.voice_client import VOICES, config, settle
from sessions.commands import AppendAudio
from sessions.manager import ResumeRefused, SeatRefused, SessionManager
from sessions.settings import SessionLimits, VoiceSettings
from sessions.states import State
from sessions.voice_config import SemanticVad
from sessions.voice_sessions import VoiceSessions


def opener(graph: FakeGraph, seats: int) -> tuple[VoiceSessions, SessionManager]:
    loop = asyncio.get_running_loop()
    manager = SessionManager(SessionLimits(maximum_sessions=seats), 1, lambda: 1, loop.call_later)
    return VoiceSessions(graph, manager, VoiceSettings(), VOICES), manager


async def test_seat_and_requests_are_given_back() -> None:
    graph = FakeGraph()
    sessions, manager = opener(graph, seats=1)
    async with sessions.open(config(SemanticVad())) as attached:
        await settle()
        assert graph.of("vad")[0].fence == attached.attachment.fence.number
        assert [info.state for info in manager.sessions()] == [State.ACTIVE]
        with pytest.raises(SeatRefused):
            await sessions.open(config()).__aenter__()
        attached.leave()
    assert manager.free_seats == 1
    assert graph.open_requests == 0


async def test_what_the_session_logs_is_about_it() -> None:
    class Listening(FakeGraph):
        async def submit(self, request: Request) -> FakeStream:
            heard.add(logs.session_id.get())
            return await super().submit(request)

    heard: set[str] = set()
    sessions, _ = opener(Listening(), seats=1)
    async with sessions, sessions.open(config(SemanticVad())) as attached:
        await settle()
        assert heard == {attached.session_id} == {logs.session_id.get()}
    assert logs.session_id.get() == ""


async def test_a_transport_that_breaks_leaves_its_session_and_a_newcomer_takes_the_seat() -> None:
    graph = FakeGraph()
    sessions, manager = opener(graph, seats=1)
    tokens: list[str] = []

    async def break_down() -> None:
        async with sessions.open(config(SemanticVad())) as attached:
            tokens.append(attached.token)
            raise ConnectionError("socket gone")

    async with sessions:
        with pytest.raises(ConnectionError, match="socket gone"):
            await break_down()
        assert [info.state for info in manager.sessions()] == [State.DETACHED]
        async with sessions.open(config()) as newcomer:
            assert [info.session_id for info in manager.sessions()] == [newcomer.session_id]
            with pytest.raises(ResumeRefused):
                await sessions.resume(tokens[0]).__aenter__()
    assert (manager.free_seats, graph.open_requests) == (1, 0)


async def test_a_session_outlives_the_task_that_was_cancelled() -> None:
    sessions, manager = opener(FakeGraph(), seats=1)

    async def hold() -> None:
        async with sessions.open(config(SemanticVad())) as attached:
            tokens.append(attached.token)
            await asyncio.Event().wait()

    tokens: list[str] = []
    async with sessions:
        holding = asyncio.create_task(hold())
        await settle()
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holding
        async with sessions.resume(tokens[0]) as attached:
            attached.leave()
        assert manager.free_seats == 1


async def test_an_open_that_is_cancelled_half_way_leaks_nothing() -> None:
    graph = FakeGraph()
    sessions, manager = opener(graph, seats=1)
    async with sessions:
        for turns in range(100):
            opening = asyncio.create_task(sessions.open(config(SemanticVad())).__aenter__())
            for _ in range(turns % 7):
                await asyncio.sleep(0)
            opening.cancel()
            await asyncio.wait([opening])
            del opening
            await settle()
            assert len(manager.sessions()) <= 1
    assert (manager.free_seats, graph.open_requests) == (1, 0)


async def test_a_session_that_breaks_fails_its_transport_and_frees_its_seat() -> None:
    graph = FakeGraph()
    sessions, manager = opener(graph, seats=1)

    async def talk() -> None:
        async with sessions.open(config(SemanticVad())) as attached:
            await settle()
            graph.pushed.clear()  # the fake's own bookkeeping breaks at the next push
            await attached.handle(AppendAudio(tone(500)))
            assert [type(event).__name__ async for event in attached.events()] == ["Opened"]

    with pytest.raises(ExceptionGroup):
        await talk()
    assert (manager.free_seats, graph.open_requests) == (1, 0)


async def test_a_session_that_breaks_while_nobody_is_there_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    graph = FakeGraph()
    sessions, manager = opener(graph, seats=1)
    graph.transcripts.clear()  # the fake's own bookkeeping breaks at the first transcript, which comes when the client has gone
    async with sessions:
        async with sessions.open(config(SemanticVad())) as attached:
            await settle()
            await attached.handle(AppendAudio(tone(500)))
            await settle()
        await settle()
        assert manager.free_seats == 1
    assert "failed while nobody was connected" in caplog.text
