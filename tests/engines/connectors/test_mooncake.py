"""Payloads by Mooncake, where its libraries are: what the contract of all connectors does not ask."""

import asyncio
from collections.abc import Generator

import numpy as np
import pytest

from engines.connectors import PayloadLost
from engines.connectors.contents import Content, Inline, Key, Remote
from engines.connectors.layout import outline
from engines.connectors.mooncake import NAME, MooncakeConnector
from engines.connectors.mooncake_engine import MooncakeEngine
from engines.payloads import Array, Payload
from fakes.mooncake import mooncake_engines

KEY = Key("gateway#0/r/0/stage", 0)


@pytest.fixture(scope="module")
def engines() -> tuple[MooncakeEngine, MooncakeEngine]:
    return mooncake_engines()


@pytest.fixture
def producer(engines: tuple[MooncakeEngine, MooncakeEngine]) -> Generator[MooncakeConnector]:
    made = MooncakeConnector(engines[0], 8 << 20)
    yield made
    made.close()


@pytest.fixture
def consumer(engines: tuple[MooncakeEngine, MooncakeEngine]) -> Generator[MooncakeConnector]:
    made = MooncakeConnector(engines[1], 0)
    yield made
    made.close()


def filled(value: int, nbytes: int = 1 << 20) -> Payload:
    return Payload("words", {"values": Array.of(np.full(nbytes, value, np.uint8)), "more": Array.of(np.arange(3))})


async def values(consumer: MooncakeConnector, content: Content) -> set[int]:
    return set(np.unique((await consumer.get(content)).arrays["values"].numpy()).tolist())


async def test_what_there_is_no_room_for_travels_inline(producer: MooncakeConnector, consumer: MooncakeConnector) -> None:
    contents = [producer.put(Key("s", seq), filled(seq)) for seq in range(9)]
    assert [type(content) for content in contents] == [Remote] * 7 + [Inline] * 2
    assert [await values(consumer, content) for content in contents] == [{seq} for seq in range(9)]
    assert producer.cleanup("s", before=4) == 4
    assert isinstance(producer.put(Key("s", 9), filled(9)), Remote)


async def test_memory_that_is_used_again_is_told_from_what_was_there(
    producer: MooncakeConnector, consumer: MooncakeConnector
) -> None:
    content = producer.put(KEY, filled(1))
    producer.cleanup(KEY.scope)
    with pytest.raises(PayloadLost, match="does not have it"):
        await consumer.get(content)
    producer.put(KEY, filled(2))
    with pytest.raises(PayloadLost, match="does not have it"):
        await consumer.get(content)
    assert consumer.health() == ""


async def test_many_at_once(producer: MooncakeConnector, consumer: MooncakeConnector) -> None:
    contents = [producer.put(Key("s", seq), filled(seq, 1 << 17)) for seq in range(40)]
    assert await asyncio.gather(*(values(consumer, content) for content in contents)) == [{seq} for seq in range(40)]


@pytest.mark.parametrize("address", ["127.0.0.1:1/4096/1", "nonsense", "127.0.0.1:1/x/1", ""])
async def test_a_producer_that_is_not_there_is_known_at_once(consumer: MooncakeConnector, address: str) -> None:
    async with asyncio.timeout(2):
        with pytest.raises(PayloadLost):
            await consumer.get(Remote(outline(KEY, filled(1)), NAME, address))
    assert consumer.health()
