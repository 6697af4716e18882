"""Gateways that say nothing: what they have open is taken back where others may wait for it."""

import asyncio
import logging

import pytest

from engines.connectors.contents import Inline
from engines.payloads import audio
from fakes.worker_bench import Bench


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.worker.namespace.HELLO_LIMIT_S", 0.1)
    monkeypatch.setattr("engines.worker.namespace.SILENCE_LIMIT_S", 0.3)


@pytest.mark.usefixtures("hasty")
async def test_a_gateway_that_has_fallen_silent_gives_its_slots_to_others(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.slots, bench.is_supervised = 1, False
    silent, other = await bench.gateway("silent"), await bench.gateway("other")
    silent.submit("r")
    silent.push("r", "a")
    await silent.chunk("r")
    assert (await other.heard()).stages[0].active == 1
    await other.idle()
    other.submit("r")
    other.push("r", "b", final=True)
    assert await other.texts("r") == ["b", ""]
    await silent.hung_up()
    assert "connection silent#0 dropped: nothing was heard of it for 0.3 s" in caplog.messages


@pytest.mark.usefixtures("hasty")
async def test_also_when_it_leaves_much_unread(bench: Bench) -> None:
    """The worker waits for its reader then, and reads nothing of it either."""
    bench.slots, bench.is_supervised = 1, False
    silent, other = await bench.gateway("silent"), await bench.gateway("other")
    silent.submit("r", "blobs", window_bytes=16 << 20)
    silent.hand("r", *[Inline(audio(bytes(400_000), 16_000))] * 8, stage="blobs")
    assert (await other.heard()).stages
    await other.idle()


@pytest.mark.usefixtures("hasty")
async def test_the_only_gateway_may_be_silent(bench: Bench) -> None:
    """It is stopped, perhaps, and will go on: then its worker must still be there."""
    gateway = await bench.gateway()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.6):
            await gateway.hung_up()


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("is_supervised", [True, False])
async def test_who_never_greets_is_hung_up_on(bench: Bench, is_supervised: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    bench.is_supervised = is_supervised
    await (await bench.stranger()).hung_up()
    assert "dropped: nothing was heard of it for 0.1 s" in caplog.text
