"""Pushes whose payloads must be fetched: in order, bounded in time, in nobody else's way."""

import pytest

from engines.connectors.contents import Inline
from engines.messages.to_gateway import Aborted, ErrorKind, Failed, Taken
from engines.messages.to_worker import PUSH_WINDOW, Abort
from engines.payloads import Payload
from fakes.worker_bench import Bench


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing ends by being late."""
    monkeypatch.setattr("engines.worker.arrivals.PATIENCE_S", 3_600.0)


async def test_later_pushes_wait_for_the_fetch_and_other_requests_do_not(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    gateway.submit("other")
    bench.remote.held = {"far"}
    gateway.hand("r", bench.remote.offer("far"), Inline(Payload("near")), bench.remote.offer("away"), final=True)
    await bench.remote.fetches(1)
    gateway.push("other", "o", final=True)
    assert await gateway.texts("other") == ["o", ""]
    await gateway.heard()
    assert not any(isinstance(message, Taken) and message.request_id == "r" for message in gateway.unread)
    await bench.remote.release("far")
    assert await gateway.texts("r") == ["far", "near", "away", ""]


async def test_a_push_is_read_at_once_again_when_nothing_is_being_fetched(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    for text in ("1", "3"):
        gateway.hand("r", bench.remote.offer(text))
        assert (await gateway.chunk("r")).seq == int(text) - 1
        gateway.push("r", str(int(text) + 1))
        assert (await gateway.chunk("r")).seq == int(text)


async def test_a_lost_payload_ends_its_request_and_is_named(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    lost = bench.remote.offer("lost")
    bench.remote.lose(lost)
    gateway.hand("r", lost)
    failed = await gateway.next(Failed)
    assert (failed.kind, failed.message) == (ErrorKind.REPLICA_LOST, "payload 0 of elsewhere: scripted")
    gateway.submit("next")
    gateway.push("next", "fine", final=True)
    assert await gateway.texts("next") == ["fine", ""]


async def test_a_payload_that_does_not_come_is_lost(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.worker.arrivals.PATIENCE_S", 0.02)
    gateway = await bench.gateway()
    gateway.submit("r")
    bench.remote.held = {"late"}
    gateway.hand("r", bench.remote.offer("late"))
    assert "payload 0 of elsewhere: it did not come within 0.02 s" in (await gateway.next(Failed)).message
    assert bench.remote.fetching == 0


async def test_a_payload_of_a_connector_that_the_worker_has_not_is_lost(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    bench.remote.name = "mars"
    gateway.hand("r", bench.remote.offer("x"))
    assert "mars" in (await gateway.next(Failed)).message


async def test_abort_ends_the_fetch(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    bench.remote.held = {"far"}
    gateway.hand("r", bench.remote.offer("far"), Inline(Payload("near")), final=True)
    await bench.remote.fetches(1)
    gateway.send(Abort("r"))
    await gateway.next(Aborted)
    await bench.remote.fetches(0)
    assert bench.model.batches == []
    await gateway.idle()


async def test_the_end_of_the_connection_ends_the_fetch(bench: Bench) -> None:
    gateway, other = await bench.gateway(), await bench.gateway()
    gateway.submit("r")
    bench.remote.held = {"far"}
    gateway.hand("r", bench.remote.offer("far"))
    await bench.remote.fetches(1)
    await gateway.close()
    await bench.remote.fetches(0)
    await other.idle()


async def test_what_is_being_fetched_counts_as_not_taken(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    bench.remote.held = {"far"}
    gateway.hand("r", bench.remote.offer("far"))
    gateway.push("r", *["x"] * PUSH_WINDOW)
    assert "at most 32 pushes not yet taken" in (await gateway.next(Failed)).message
    await bench.remote.fetches(0)
