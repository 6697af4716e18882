"""Which node a request belongs to."""

from dataclasses import dataclass

import pytest

from realtime.front.head import Wanted
from realtime.front.routing import route
from sessions.store.interface import StoreDown
from sessions.store.records import Fence, Owner


@dataclass
class Node:
    name: str
    number: int
    load: int = 0
    is_ready: bool = True
    is_there: bool = True


class Owners:
    """Of session `known`; None: nobody."""

    def __init__(self, node: str | None, *, down: bool = False) -> None:
        self._node = node
        self._down = down

    async def owner(self, session_id: str) -> Owner | None:
        if self._down:
            raise StoreDown("it is switched off", 1.0)
        assert session_id == "known"
        return None if self._node is None else Owner(self._node, Fence(1, 1), 5.0)


NOBODY = Owners(None)
RETURN = Wanted("/v1/realtime", "known")


async def test_whoever_is_new_goes_where_least_is_going_on() -> None:
    busy, calm = Node("a", 1, load=5), Node("b", 2, load=4)
    assert await route(Wanted("/"), [busy, calm], NOBODY) is calm


async def test_a_node_that_is_not_ready_gets_nobody() -> None:
    loading, busy = Node("a", 1, is_ready=False), Node("b", 2, load=9)
    assert await route(Wanted("/"), [loading, busy], NOBODY) is busy
    assert await route(Wanted("/"), [loading], NOBODY) is None


async def test_whoever_comes_back_goes_to_the_owner() -> None:
    owner, calm = Node("a", 1, load=5), Node("b", 2)
    assert await route(RETURN, [owner, calm], Owners("a")) is owner


@pytest.mark.parametrize("owners", [NOBODY, Owners("another-host-1"), Owners("a", down=True)])
async def test_without_an_owner_here_anybody_may_claim_the_session(owners: Owners) -> None:
    busy, calm = Node("a", 1, load=5), Node("b", 2)
    assert await route(RETURN, [busy, calm], owners) is calm


async def test_an_owner_that_drains_is_spared() -> None:
    draining, other = Node("a", 1, is_ready=False), Node("b", 2, load=7)
    assert await route(RETURN, [draining, other], Owners("a")) is other


async def test_a_call_goes_to_the_node_that_has_it_even_while_that_drains() -> None:
    draining, other = Node("a", 1, is_ready=False), Node("b", 2)
    wanted = Wanted("/v1/realtime/calls/rtc_1_ff/hangup", None, 1)
    assert await route(wanted, [draining, other], NOBODY) is draining
    draining.is_there = False
    assert await route(wanted, [draining, other], NOBODY) is other
