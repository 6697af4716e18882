"""Several who come back to one session at the same time: the newest gets it, and nobody waits for who has no right to it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from fakes.house import House, coming, house
from fakes.voice_client import config, settle
from sessions.retention.resume_tokens import HeldElsewhere, Superseded, hashed
from sessions.states import State
from sessions.voice.attached import Dismissal
from sessions.voice.coming_back import YIELD_S

SETTLE_S = 10.0
GHOST_LEASE_S = 100.0


class Tab:
    """Comes with `token`, and stays until it is dismissed or closed."""

    def __init__(self, world: House, token: str) -> None:
        self.has_it = asyncio.Event()
        self.why: Dismissal | type[Exception] | None = None
        self._task = asyncio.create_task(self._stay(world, token))

    async def _stay(self, world: House, token: str) -> None:
        try:
            async with world.sessions.resume(token) as attached:
                if attached.is_current:
                    self.has_it.set()
                await attached.dismissed.wait()
                self.why = attached.why
        except (Superseded, HeldElsewhere) as refused:
            self.why = type(refused)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        await settle()


@asynccontextmanager
async def rests(world: House) -> AsyncGenerator[str]:
    """The token of a session there, which is in the store alone."""
    async with coming(world) as client:
        token = client.attached.token
    await world.sessions.put_down(client.attached.session_id)
    yield token


@pytest.mark.parametrize("is_warm", [True, False])
async def test_whenever_a_second_tab_comes_it_has_the_session_and_the_first_hears_so(is_warm: bool) -> None:
    async with house() as world, coming(world) as first:
        session_id, token = first.attached.session_id, first.attached.token
        for turns in range(60):
            if not is_warm:
                await world.sessions.put_down(session_id)
            older = Tab(world, token)
            for _ in range(turns):
                await asyncio.sleep(0)
            newer = Tab(world, token)
            async with asyncio.timeout(10):
                await newer.has_it.wait()
            await settle()
            assert older.why in (Superseded, Dismissal.SUPERSEDED)
            assert (newer.why, world.states()) == (None, [State.ACTIVE])
            await newer.close()
            assert world.states() == [State.DETACHED]


async def test_a_return_that_is_broken_off_anywhere_keeps_no_seat() -> None:
    async with house(seats=1) as world, rests(world) as token:
        for turns in range(60):
            tab = Tab(world, token)
            for _ in range(turns):
                await asyncio.sleep(0)
            await tab.close()
            async with world.sessions.open(config()) as newcomer:  # a seat that nobody sits on is lent
                newcomer.leave()


async def test_who_has_waited_longer_for_another_node_does_not_take_the_session_back_from_the_newest() -> None:
    async with house() as world, rests(world) as token:
        session_id, secret = token.split(".")
        await world.store.claim(session_id, "ghost", GHOST_LEASE_S, hashed(secret), b"an offer that was lost")
        older = Tab(world, token)
        await world.clock.advance(0.2)  # it tries again at 0.30 and 0.62, and the newer one at 0.34
        newer = Tab(world, token)
        await world.clock.advance(0.11)
        await world.store.disown(session_id, "ghost")
        await world.clock.advance(0.05)
        assert (newer.has_it.is_set(), older.why) == (True, Superseded)
        await world.clock.advance(YIELD_S)
        assert newer.why is None
        await newer.close()


async def test_nobody_waits_for_a_wrong_token_while_the_store_settles() -> None:
    async with house() as world, coming(world) as first:
        token = first.attached.token
        world.store.lose_all(SETTLE_S)
        await world.ownership.renew()
        wrong = Tab(world, f"{token}x")
        await settle()
        right = Tab(world, token)
        await settle()
        assert (right.has_it.is_set(), first.attached.why) == (True, Dismissal.SUPERSEDED)
        await world.clock.advance(2 * YIELD_S)
        assert (wrong.why, right.why) == (HeldElsewhere, None)
        await right.close()
