"""The store has lost its data, and whoever is in the middle of a session comes back before its node has put it back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from fakes.house import House, coming, house
from fakes.voice_client import settle
from sessions.identity.principal import LOCAL, Principal
from sessions.retention.resume_tokens import HeldElsewhere, ResumeRefused
from sessions.voice.coming_back import YIELD_S

SETTLE_S = 10.0
PRINCIPALS = [None, LOCAL]


async def comes_back(house: House, token: str, principal: Principal | None) -> None:
    async with house.sessions.resume(token, principal=principal) as attached:
        await attached.durable()


@asynccontextmanager
async def beside(world: House) -> AsyncGenerator[tuple[str, House]]:
    """The token of a session there that waits for its client, and another node."""
    async with coming(world) as client:
        token = client.attached.token
    async with house(beside=world, name="other") as other:
        yield token, other


@pytest.mark.parametrize("principal", PRINCIPALS)
async def test_who_comes_back_elsewhere_waits_until_the_owner_has_put_the_session_back(principal: Principal | None) -> None:
    async with house() as world, beside(world) as (token, other):
        world.store.lose_all(SETTLE_S)
        returning = asyncio.create_task(comes_back(other, token, principal))
        await world.clock.advance(0.1)
        await world.ownership.renew()
        await world.clock.advance(YIELD_S)
        await asyncio.wait([returning], timeout=10)
        await returning
        assert (len(world.states()), len(other.states())) == (0, 1)


@pytest.mark.parametrize("principal", PRINCIPALS)
async def test_while_the_store_settles_nobody_is_told_that_there_is_no_such_session(principal: Principal | None) -> None:
    async with house() as world, beside(world) as (token, other):
        world.store.lose_all(SETTLE_S)
        returning = asyncio.create_task(comes_back(other, token, principal))
        await world.clock.advance(2 * YIELD_S)
        await settle()
        with pytest.raises(HeldElsewhere, match=r"has lost its data.* try again") as held:
            await returning
        assert 0 < held.value.retry_after_s <= YIELD_S
        world.now_s += SETTLE_S
        with pytest.raises(ResumeRefused):
            await comes_back(other, token, principal)


async def test_a_store_that_has_settled_refuses_at_once() -> None:
    async with house() as world, coming(world) as client:
        for token in (f"{client.attached.token}x", "sess_none.secret"):
            with pytest.raises(ResumeRefused):
                await comes_back(world, token, LOCAL)
