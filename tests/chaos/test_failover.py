"""The primary dies, and a replica takes over."""

from pathlib import Path

import pytest

from fakes.real_house import house, seated
from fakes.redis_sentinel import running_sentinels
from sessions.admission.node import Leases

pytestmark = [pytest.mark.full, pytest.mark.timeout(120)]

SEATS = 4
LEASES = Leases(lease_s=6.0, return_s=6.0, grace_s=12.0)
"""Longer than the failover."""


async def test_a_failover_ends_nobodys_session_and_lets_nobody_in_beyond_what_there_is(tmp_path: Path) -> None:
    async with (
        running_sentinels(tmp_path) as watched,
        house(watched.url, nodes=3, seats=SEATS, leases=LEASES, settle_s=6.0) as here,
    ):
        people = [here.comes("early", here.nodes[0])]
        await here.until(lambda: seated(people) == 1)
        people += [here.comes(f"late{number}", node) for number, node in enumerate(here.nodes[1:])]
        await here.until(lambda: seated(people) == 3)
        await watched.primary.kill()
        newcomers = [here.comes(f"new{number}", node, patient=True) for number, node in enumerate(here.nodes)]
        await here.until(lambda: seated(newcomers) == 1, 60.0)
        assert {person.session_id for person in people} < set(here.talking())
        people[0].leaves.set()
        await here.until(lambda: seated(newcomers) == 2)
        assert here.faults == []
