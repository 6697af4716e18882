"""One connection of a session that has others before and after it, on a wire without a network."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import WSCloseCode

from fakes.edge import edge_context
from fakes.graph import FakeGraph
from fakes.voice_client import settle
from fakes.wire import FakeWire
from realtime.context import AppContext
from realtime.openai_realtime.connection import ROUND_TRIP_S, SUPERSEDED, Connection
from realtime.openai_realtime.opening import default_session
from realtime.openai_realtime.session_patch import SessionPatch
from realtime.openai_realtime.wire import Ended
from sessions.retention.resume_tokens import ResumeRefused
from sessions.voice.attached import Attached
from sessions.voice.commands import CommandRefused
from sessions.voice.settings import VoiceSettings

INSTRUCTIONS = "Sing."
PATCH = SessionPatch(instructions=INSTRUCTIONS)


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@asynccontextmanager
async def world(queue: int = 256, clock: Clock | None = None) -> AsyncGenerator[tuple[AppContext, Attached]]:
    """A server and a session on it; its first transport says nothing yet."""
    context = edge_context(FakeGraph(), voice_settings=VoiceSettings(event_queue=queue), clock=clock or Clock())
    sessions, config = context.voice_sessions, default_session(context).config
    async with context.node.running(), context.ownership.running(), sessions, sessions.open(config) as attached:
        yield context, attached


def connection(context: AppContext, attached: Attached, wire: FakeWire, patch: SessionPatch | None = None) -> Connection:
    return Connection(context, wire, attached, patch=patch)


@asynccontextmanager
async def running(made: Connection) -> AsyncGenerator[asyncio.Task[Ended]]:
    task = asyncio.create_task(made.run())
    yield task
    task.cancel()
    await asyncio.wait({task})


async def test_a_connection_that_lost_before_it_began_says_so() -> None:
    wire = FakeWire()
    async with world() as (context, loser), context.voice_sessions.resume(loser.token):
        assert (await connection(context, loser, wire).run()).code == SUPERSEDED
    assert [(event["type"], event["error"]["code"]) for event in wire.events] == [("error", "superseded")]


async def test_a_connection_whose_session_ends_is_told_another_end() -> None:
    async with world() as (context, attached):
        attached.leave()
        async with running(connection(context, attached, FakeWire())) as run:
            await settle()
            async with context.voice_sessions:
                pass
            assert (await run).code == WSCloseCode.SERVICE_RESTART


async def test_what_a_returning_client_wants_changed_is_changed_when_it_knows_its_session() -> None:
    wire = FakeWire()
    wire.taking.clear()
    async with (
        world() as (context, first),
        context.voice_sessions.resume(first.token) as second,
        running(connection(context, second, wire, PATCH)),
    ):
        await settle()
        assert second.session.config.instructions != INSTRUCTIONS
        wire.taking.set()
        changed = await wire.until("session.updated")
        assert [event["type"] for event in wire.events] == ["session.created", "session.updated"]
        assert changed["session"]["instructions"] == INSTRUCTIONS
        assert wire.events[0]["session"]["instructions"] != INSTRUCTIONS


async def test_what_it_cannot_have_it_is_told() -> None:
    wire = FakeWire()
    patch = SessionPatch(output_modalities=["dance"])
    async with (
        world() as (context, first),
        context.voice_sessions.resume(first.token) as second,
        running(connection(context, second, wire, patch)),
    ):
        assert (await wire.until("error"))["error"]["param"] == "session.output_modalities"
        wire.client_sends("input_audio_buffer.clear")
        await wire.until("input_audio_buffer.cleared")


async def test_whoever_takes_over_knows_of_a_change_that_was_not_told_yet() -> None:
    wire, another = FakeWire(), FakeWire()
    async with world(queue=1) as (context, first):
        wire.taking.clear()
        async with running(connection(context, first, wire)) as run:
            wire.client_sends("session.update", session={"type": "realtime", "instructions": INSTRUCTIONS, "tracing": "auto"})
            await settle()
            async with context.voice_sessions.resume(first.token) as second:
                made = connection(context, second, another)
                wire.taking.set()
                assert (await run).code == SUPERSEDED
                async with running(made):
                    shown = (await another.until("session.created"))["session"]
                    assert (shown["instructions"], shown["tracing"]) == (INSTRUCTIONS, "auto")


async def test_whoever_has_lost_the_session_changes_nothing_of_what_is_known_of_it() -> None:
    async with world() as (context, first):
        loser = connection(context, first, FakeWire())
        async with context.voice_sessions.resume(first.token) as second:
            await connection(context, second, FakeWire()).configure(PATCH)
            known = context.known_sessions.of(second.session_id).shown
            with pytest.raises(CommandRefused):
                await loser.configure(SessionPatch(tracing="auto"))
            assert context.known_sessions.of(second.session_id).shown == known


async def is_held(context: AppContext, token: str) -> bool:
    try:
        async with context.voice_sessions.resume(token):
            return True
    except ResumeRefused:
        return False


@pytest.mark.parametrize(
    ("late_s", "delivered", "is_void"),
    [(ROUND_TRIP_S, True, True), (ROUND_TRIP_S / 2, True, False), (ROUND_TRIP_S, False, False)],
)
async def test_a_client_that_speaks_on_has_got_its_token_and_the_one_before_is_void(
    late_s: float, delivered: bool, is_void: bool
) -> None:
    clock, wire = Clock(), FakeWire()
    async with world(clock=clock) as (context, first), context.voice_sessions.resume(first.token) as second:
        wire.is_delivered = delivered
        async with running(connection(context, second, wire)):
            await wire.until("session.created")
            clock.now_s += late_s
            wire.client_sends("input_audio_buffer.clear")
            await wire.until("input_audio_buffer.cleared")
            assert await is_held(context, first.token) is not is_void
            assert await is_held(context, second.token)


async def test_what_a_client_says_before_it_was_told_its_token_shows_nothing() -> None:
    clock, wire = Clock(), FakeWire()
    async with world(clock=clock) as (context, first), context.voice_sessions.resume(first.token) as second:
        wire.taking.clear()
        async with running(connection(context, second, wire)):
            clock.now_s += 10
            wire.client_sends("input_audio_buffer.clear")
            await settle()
            assert await is_held(context, first.token)
