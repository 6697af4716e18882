"""When a tenant is billed for what it has used, also with a store that is down now and then."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes.clock import Clock
from fakes.faulty_store import Fault, FaultyStore
from fakes.redis_server import running_redis
from fakes.session_stores import one_server
from fakes.whole_store import in_redis
from sessions import billing
from sessions.billing import ACCOUNT_S, Billing
from sessions.store.interface import Fenced, Store
from sessions.store.memory import MemoryStore
from sessions.store.records import Fence
from sessions.store.url import parse
from sessions.usage import UsageMeter

EVERY_S = 3.0
DAY_S = 86_400.0


class Running:
    """A session's meter, and its journal: `refuses` is what writing raises."""

    def __init__(self) -> None:
        self.meter = UsageMeter()
        self.refuses: Exception | None = None

    async def write(self) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.meter.written = self.meter.totals


class Till:
    def __init__(self, every_s: float = EVERY_S) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock.now_us)
        self.line = FaultyStore(self.store)
        self.billing = Billing(self.line, every_s, self.clock, self.clock.sleep)

    async def bill(self, tenant: str = "acme") -> Mapping[str, float]:
        return (await self.store.bills()).get(tenant, {})

    def session(self, session_id: str, life_s: float = 3_600.0) -> Running:
        running = Running()
        self.billing.follow("acme", session_id, running.meter, running.write, life_s)
        return running


@asynccontextmanager
async def till(every_s: float = EVERY_S) -> AsyncGenerator[Till]:
    made = Till(every_s)
    async with made.billing.running():
        await made.clock.advance(0)
        yield made
    assert made.billing.untold == 0


async def test_a_running_session_is_billed_now_and_then_and_at_its_end() -> None:
    async with till() as made:
        running = made.session("sess_1")
        running.meter.add("audio_in_s", 2.0)
        await made.clock.advance(EVERY_S)
        assert await made.bill() == {"audio_in_s": 2.0}
        running.meter.add("audio_in_s", 1.5)
        running.meter.add("tokens_out", 9)
        await made.billing.close("sess_1")
        assert await made.bill() == {"audio_in_s": 3.5, "tokens_out": 9}
        await made.clock.advance(10 * EVERY_S)
        assert made.line.calls["bill"] == 2  # the same bill is not told again and again


async def test_what_is_not_written_with_the_session_is_not_billed_yet() -> None:
    async with till() as made:
        running = made.session("sess_1")
        running.meter.add("audio_in_s", 2.0)
        running.refuses = Fenced("sess_1", Fence(1, 1))
        await made.clock.advance(EVERY_S)
        assert await made.bill() == {}
        running.refuses = None
        await made.clock.advance(EVERY_S)
        assert await made.bill() == {"audio_in_s": 2.0}


async def test_a_bill_whose_answer_is_lost_is_told_again_and_counted_once() -> None:
    async with till() as made:
        running = made.session("sess_1")
        running.meter.add("audio_in_s", 2.0)
        made.line.next["bill"].extend((Fault.LOST_ANSWER, Fault.LOST_QUESTION))
        await made.billing.close("sess_1")
        await made.clock.advance(10)
        assert made.line.calls["bill"] >= 3
        assert await made.bill() == {"audio_in_s": 2.0}


async def test_last_bills_wait_for_a_store_that_is_down() -> None:
    async with till() as made:
        made.line.down = True
        for number in range(3):
            made.session(f"sess_{number}").meter.add("tokens_in", 5)
            await made.billing.close(f"sess_{number}")
        await made.clock.advance(30)
        assert await made.bill() == {}
        made.line.down = False
        await made.clock.advance(2)
        assert await made.bill() == {"tokens_in": 15}


async def test_of_an_endless_outage_the_oldest_bills_are_lost_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(billing, "UNTOLD", 50)
    async with till() as made:
        made.line.down = True
        for number in range(52):
            made.session(f"sess_{number}").meter.add("tokens_in", 1)
            await made.billing.close(f"sess_{number}")
        assert made.billing.untold == 50
        assert "the usage of sess_1 is not billed: " in caplog.text
        made.line.down = False


async def test_one_shot_requests_are_billed_at_once_under_one_name_an_hour() -> None:
    async with till() as made:
        made.billing.add("acme", {"requests": 1, "tokens_out": 40})
        made.billing.add("other", {"requests": 1})
        await made.clock.advance(0)
        assert await made.bill() == {"requests": 1, "tokens_out": 40}
        made.billing.add("acme", {"requests": 1, "tokens_out": 2})
        await made.clock.advance(ACCOUNT_S + 1)
        made.billing.add("acme", {"requests": 1})
        await made.clock.advance(0)
        assert await made.bill() == {"requests": 3, "tokens_out": 42}
        assert await made.bill("other") == {"requests": 1}


async def test_a_session_that_goes_on_elsewhere_is_not_billed_here_any_more() -> None:
    async with till() as made:
        running = made.session("sess_1")
        made.billing.leave("sess_1")
        running.meter.add("audio_in_s", 2.0)
        await made.clock.advance(2 * EVERY_S)
        await made.billing.close("sess_1")
        assert await made.bill() == {}


async def test_a_session_that_is_silent_for_days_is_not_billed_anew() -> None:
    async with till(every_s=2 * DAY_S) as made:
        running = made.session("sess_1", life_s=5 * DAY_S)
        for used_s in (2.0, 1.0):
            running.meter.add("audio_in_s", used_s)
            await made.clock.advance(2 * DAY_S)
        await made.billing.close("sess_1")
        assert await made.bill() == {"audio_in_s": 3.0}


async def test_what_is_used_while_a_bill_is_on_its_way_is_billed_after_it() -> None:
    async with till() as made:
        made.line.next["bill"].append(Fault.HELD_BEFORE)
        made.billing.add("acme", {"requests": 1})
        await asyncio.wait_for(made.line.holding.wait(), 5)
        made.billing.add("acme", {"requests": 1})
        made.line.let_on.set()
        await made.clock.advance(0)
        assert await made.bill() == {"requests": 2}


async def test_everything_is_told_before_the_server_has_ended() -> None:
    made = Till()
    async with made.billing.running():
        made.billing.add("acme", {"requests": 1})
    assert await made.bill() == {"requests": 1}


async def test_a_store_without_its_data_is_told_all_that_goes_on(tmp_path: Path) -> None:
    async with running_redis(tmp_path) as server, in_redis(server.url) as timed:
        till, running = Billing(timed.store, EVERY_S, lambda: 0.0), Running()
        async with till.running():
            till.follow("acme", "sess_1", running.meter, running.write, 3_600.0)
            running.meter.add("audio_in_s", 2.0)
            till.add("acme", {"requests": 3})
            await told(timed.store, {"requests": 3})
            wire = one_server(parse(server.url).places[0])
            await wire.ask("FLUSHALL")
            await wire.close()
            running.meter.add("audio_in_s", 1.0)
            await till.close("sess_1")
            till.add("acme", {"requests": 1})
            await told(timed.store, {"audio_in_s": 3.0, "requests": 4})


async def told(store: Store, bill: Mapping[str, float]) -> None:
    async with asyncio.timeout(5):
        while (await store.bills()).get("acme") != bill:
            pass
