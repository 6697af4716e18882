"""A seat lives exactly as long as its session."""

import asyncio

import pytest

from engines import logs
from engines.requests import Request
from fakes.graph import FakeGraph, FakeStream
from fakes.voice_client import VOICES, config, settle
from sessions.manager import SeatRefused, SessionManager
from sessions.settings import SessionLimits, VoiceSettings
from sessions.states import State
from sessions.voice_config import SemanticVad
from sessions.voice_sessions import VoiceSessions


def opener(graph: FakeGraph, seats: int) -> tuple[VoiceSessions, SessionManager]:
    loop = asyncio.get_running_loop()
    manager = SessionManager(SessionLimits(maximum_sessions=seats), 1, lambda: 1, loop.call_later, lambda session_id: None)
    return VoiceSessions(graph, manager, VoiceSettings(), VOICES), manager


async def test_seat_and_requests_are_given_back() -> None:
    graph = FakeGraph()
    sessions, manager = opener(graph, seats=1)
    async with sessions.open(config(SemanticVad())) as (_, attachment):
        await settle()
        assert graph.of("vad")[0].fence == attachment.fence.number
        assert [info.state for info in manager.sessions()] == [State.ACTIVE]
        with pytest.raises(SeatRefused):
            await sessions.open(config()).__aenter__()
    assert manager.free_seats == 1
    assert graph.open_requests == 0


async def test_what_the_session_logs_is_about_it() -> None:
    class Listening(FakeGraph):
        async def submit(self, request: Request) -> FakeStream:
            heard.add(logs.session_id.get())
            return await super().submit(request)

    heard: set[str] = set()
    sessions, _ = opener(Listening(), seats=1)
    async with sessions.open(config(SemanticVad())) as (_, attachment):
        await settle()
        assert heard == {attachment.session_id} == {logs.session_id.get()}
    assert logs.session_id.get() == ""


async def test_the_seat_is_free_after_an_exception_in_the_transport() -> None:
    sessions, manager = opener(FakeGraph(), seats=1)
    with pytest.raises(ConnectionError, match="socket gone"):
        async with sessions.open(config()):
            raise ConnectionError("socket gone")
    assert manager.free_seats == 1


async def test_the_seat_is_free_after_cancellation() -> None:
    sessions, manager = opener(FakeGraph(), seats=1)

    async def hold() -> None:
        async with sessions.open(config(SemanticVad())):
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    await settle()
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    assert manager.free_seats == 1
