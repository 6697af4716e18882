"""What every connector promises. A connector joins by a function in CONNECTORS that gives a producer's end and a consumer's."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from engines.connectors import Connector, PayloadLost, PayloadTooLarge
from engines.connectors.contents import Inline, Key, Outline, Place, Remote
from engines.connectors.inline import InlineConnector
from engines.connectors.mooncake import MooncakeConnector
from engines.connectors.shared_memory import SharedMemoryConnector
from engines.connectors.tcp import TcpConnector
from engines.payloads import Array, Payload
from fakes.mooncake import mooncake_engines
from fakes.payload_door import SECRET, producer

LARGE_BYTES = 256 << 10
"""More than any connector sends inline of its own accord."""


class Ends(NamedTuple):
    producer: Connector
    consumer: Connector


@asynccontextmanager
async def inline() -> AsyncGenerator[Ends, None]:
    yield Ends(InlineConnector(), InlineConnector())


@asynccontextmanager
async def shared_memory() -> AsyncGenerator[Ends, None]:
    ends = Ends(SharedMemoryConnector(8 << 20), SharedMemoryConnector(0))
    yield ends
    for end in ends:
        end.close()


@asynccontextmanager
async def tcp() -> AsyncGenerator[Ends, None]:
    async with producer() as (at_home, _):
        elsewhere = TcpConnector(None, SECRET)
        yield Ends(at_home, elsewhere)
        elsewhere.close()


@asynccontextmanager
async def mooncake() -> AsyncGenerator[Ends, None]:
    of_producer, of_consumer = mooncake_engines()
    ends = Ends(MooncakeConnector(of_producer, 8 << 20), MooncakeConnector(of_consumer, 0))
    yield ends
    for end in ends:
        end.close()


CONNECTORS: dict[str, Callable[[], AbstractAsyncContextManager[Ends]]] = {
    "inline": inline,
    "shared_memory": shared_memory,
    "tcp": tcp,
    "mooncake": mooncake,
}
HOLDING = [name for name in CONNECTORS if name != "inline"]
"""Those whose payloads wait somewhere: what travels inline is forgotten by itself."""


def large(fill: int, nbytes: int = LARGE_BYTES) -> Payload:
    return Payload(arrays={"bytes": Array.of(np.full(nbytes, fill, np.uint8))})


def fill(payload: Payload) -> int:
    [value] = np.unique(payload.arrays["bytes"].numpy())
    return int(value)


def array(values: NDArray[Any]) -> Array:
    return Array(values.dtype.name, values.shape, memoryview(values.tobytes()))


def dtypes() -> st.SearchStrategy[np.dtype[Any]]:
    names = ("bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64")
    return st.sampled_from([np.dtype(name) for name in names])


def arrays() -> st.SearchStrategy[NDArray[Any]]:
    """0-d, empty and ordinary ones."""
    shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=8)
    return dtypes().flatmap(lambda dtype: npst.arrays(dtype, shapes, elements=npst.from_dtype(dtype, allow_nan=False)))


def scalars() -> st.SearchStrategy[bool | int | float | str]:
    return st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text(max_size=20))


def named_arrays() -> st.SearchStrategy[dict[str, NDArray[Any]]]:
    """Some of them with so much beside them that nothing travels inline."""
    named = st.dictionaries(st.text(min_size=1, max_size=8), arrays(), max_size=4)
    return st.tuples(named, st.booleans()).map(lambda both: both[0] | ({"much": np.arange(LARGE_BYTES)} if both[1] else {}))


@pytest.mark.parametrize("name", CONNECTORS)
@given(named=named_arrays(), text=st.text(max_size=50), attributes=st.dictionaries(st.text(max_size=8), scalars(), max_size=4))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
async def test_what_was_put_is_got(name: str, named: dict[str, NDArray[Any]], text: str, attributes: dict[str, Any]) -> None:
    async with CONNECTORS[name]() as ends:
        put = Payload(text, {key: array(values) for key, values in named.items()}, attributes)
        got = await ends.consumer.get(ends.producer.put(Key("server/request/1/stage", 0), put))
        assert (got.text, got.attributes, list(got.arrays)) == (text, attributes, list(named))
        for key, values in named.items():
            there = got.arrays[key].numpy()
            assert (there.dtype, there.shape) == (values.dtype, values.shape)
            assert np.array_equal(there, values)
            assert not there.flags.writeable


@pytest.mark.parametrize("name", CONNECTORS)
async def test_a_payload_is_read_as_often_as_wanted_and_by_whoever_put_it(name: str) -> None:
    async with CONNECTORS[name]() as ends:
        content = ends.producer.put(Key("scope", 0), large(7))
        assert [fill(await end.get(content)) for end in (ends.consumer, ends.consumer, ends.producer)] == [7, 7, 7]


@pytest.mark.parametrize("name", HOLDING)
async def test_payloads_of_a_scope_are_forgotten_in_order(name: str) -> None:
    async with CONNECTORS[name]() as ends:
        contents = [ends.producer.put(Key("scope", seq), large(seq)) for seq in range(4)]
        ends.producer.put(Key("scope of another", 0), large(9))
        assert ends.producer.holds("scope") == 4
        assert ends.producer.cleanup("scope", before=3) == 3
        assert ends.producer.cleanup("scope", before=3) == 0
        assert (ends.producer.holds("scope"), ends.producer.holds("scope of another")) == (1, 1)
        for content in contents[:3]:
            with pytest.raises(PayloadLost, match="scope"):
                await ends.consumer.get(content)
        assert fill(await ends.consumer.get(contents[3])) == 3
        assert ends.producer.cleanup("scope") == 1
        assert (ends.producer.holds("scope"), ends.producer.holds("scope of another")) == (0, 1)
        assert ends.consumer.health() == ""


@pytest.mark.parametrize("name", CONNECTORS)
async def test_nothing_is_held_of_a_scope_that_never_was(name: str) -> None:
    async with CONNECTORS[name]() as ends:
        assert (ends.producer.holds("scope"), ends.producer.cleanup("scope"), ends.producer.health()) == (0, 0, "")


@pytest.mark.parametrize("name", HOLDING)
async def test_a_key_that_is_put_again_names_the_newer_payload(name: str) -> None:
    async with CONNECTORS[name]() as ends:
        for value in (1, 2):
            content = ends.producer.put(Key("scope", 0), large(value))
        assert fill(await ends.consumer.get(content)) == 2
        assert (ends.producer.holds("scope"), ends.producer.cleanup("scope"), ends.producer.holds("scope")) == (1, 1, 0)


@pytest.mark.parametrize("name", CONNECTORS)
async def test_what_was_got_outlives_its_producer_and_its_consumer(name: str) -> None:
    async with CONNECTORS[name]() as ends:
        got = await ends.consumer.get(ends.producer.put(Key("scope", 0), large(7)))
        ends.producer.cleanup("scope")
        for seq in range(50):
            ends.producer.put(Key("next", seq), large(1))
            ends.producer.cleanup("next")
        ends.producer.close()
        ends.consumer.close()
        assert fill(got) == 7


@pytest.mark.parametrize("name", CONNECTORS)
async def test_equal_keys_of_two_producers_never_meet(name: str) -> None:
    async with CONNECTORS[name]() as one, CONNECTORS[name]() as other:
        contents = [ends.producer.put(Key("scope", 0), large(value)) for value, ends in enumerate((one, other))]
        for ends in (one, other):
            assert [fill(await ends.consumer.get(content)) for content in contents] == [0, 1]
        one.producer.cleanup("scope")
        assert fill(await one.consumer.get(contents[1])) == 1


@pytest.mark.parametrize("name", HOLDING)
async def test_a_closed_producer_has_lost_everything(name: str) -> None:
    async with CONNECTORS[name]() as ends:
        first, second = (ends.producer.put(Key("scope", seq), large(seq)) for seq in range(2))
        await ends.consumer.get(first)
        ends.producer.close()
        ends.producer.close()
        assert ends.producer.holds("scope") == 0
        for content in (first, second):
            with pytest.raises(PayloadLost):
                await ends.consumer.get(content)
        assert isinstance(ends.producer.put(Key("scope", 2), large(2)), Inline)


@pytest.mark.parametrize("name", HOLDING)
async def test_a_closed_consumer_gets_nothing(name: str) -> None:
    async with CONNECTORS[name]() as ends:
        content = ends.producer.put(Key("scope", 0), large(1))
        ends.consumer.close()
        with pytest.raises(PayloadLost, match="closed"):
            await ends.consumer.get(content)


@pytest.mark.parametrize("name", CONNECTORS)
async def test_a_payload_that_no_one_can_carry_is_refused_with_the_limit(name: str) -> None:
    async with CONNECTORS[name]() as ends:
        vast = Payload(arrays={"bytes": Array("uint8", (2 << 30,), np.broadcast_to(np.uint8(0), 2 << 30).data)})
        with pytest.raises(PayloadTooLarge, match=str(2 << 30)) as refused:
            ends.producer.put(Key("scope", 0), vast)
        assert refused.value.limit < 2 << 30
        assert ends.producer.holds("scope") == 0


@pytest.mark.parametrize("name", CONNECTORS)
async def test_what_travels_otherwise_is_lost(name: str) -> None:
    async with CONNECTORS[name]() as ends:
        outline = Outline(Key("scope", 0), {"bytes": Place("uint8", (5,), 0, 5)})
        with pytest.raises(PayloadLost, match="scope"):
            await ends.consumer.get(Remote(outline, "pigeon", "the roof"))
