"""All connectors of one process."""

from collections.abc import Iterator

import numpy as np
import pytest

from engines.connectors import PayloadLost
from engines.connectors.contents import Inline, Key, Shared
from engines.connectors.process import INLINE, SHARED_MEMORY, Connectors
from engines.payloads import Array, Payload
from fakes.remote_payloads import RemotePayloads

LARGE = Payload(arrays={"bytes": Array.of(np.full(100_000, 7, np.uint8))})
KEY = Key("scope", 0)


@pytest.fixture
def elsewhere() -> RemotePayloads:
    return RemotePayloads()


@pytest.fixture
def connectors(elsewhere: RemotePayloads) -> Iterator[Connectors]:
    made = Connectors(1 << 20, {elsewhere.name: elsewhere})
    yield made
    made.close()


def test_each_has_its_name(connectors: Connectors, elsewhere: RemotePayloads) -> None:
    assert connectors.named(elsewhere.name) is elsewhere
    assert isinstance(connectors.named(SHARED_MEMORY).put(KEY, LARGE), Shared)
    assert isinstance(connectors.named(INLINE).put(KEY, LARGE), Inline)
    with pytest.raises(ValueError, match="expected one of inline, shared_memory, elsewhere, got 'pigeon'"):
        connectors.named("pigeon")


async def test_what_is_here_is_read_at_once_and_what_is_elsewhere_is_fetched(connectors: Connectors) -> None:
    for name, at_once in ((INLINE, True), (SHARED_MEMORY, True), ("elsewhere", False)):
        content = connectors.named(name).put(KEY, LARGE)
        payload = connectors.read(content)
        assert (payload is not None) == at_once
        assert (await connectors.get(content)).arrays["bytes"].numpy().tobytes() == LARGE.arrays["bytes"].data


async def test_what_travels_by_an_unknown_connector_is_lost(connectors: Connectors) -> None:
    content = connectors.named("elsewhere").put(KEY, LARGE)
    without = Connectors(0)
    assert without.read(content) is None
    with pytest.raises(PayloadLost, match="elsewhere"):
        await without.get(content)
    without.close()


def test_all_are_cleaned_up_together(connectors: Connectors) -> None:
    for seq in range(3):
        for name in (INLINE, SHARED_MEMORY, "elsewhere"):
            connectors.named(name).put(Key("scope", seq), LARGE)
    assert connectors.holds("scope") == 6
    assert (connectors.cleanup("scope", before=1), connectors.holds("scope")) == (2, 4)
    assert (connectors.cleanup("scope"), connectors.holds("scope")) == (4, 0)


def test_health_says_what_is_wrong(connectors: Connectors) -> None:
    assert connectors.health() == ""
    content = connectors.named(SHARED_MEMORY).put(KEY, LARGE)
    assert isinstance(content, Shared)
    other = Connectors(0)
    connectors.close()
    with pytest.raises(PayloadLost):
        other.read(content)
    assert content.arena in other.health()
    other.close()


def test_closing_closes_all(connectors: Connectors, elsewhere: RemotePayloads) -> None:
    connectors.named("elsewhere").put(KEY, LARGE)
    connectors.close()
    connectors.close()
    assert connectors.holds("scope") == 0
    assert elsewhere.kept == {}
