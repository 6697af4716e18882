"""Puts, reads, drops and clean-ups in random order on a tiny arena, against a model of who holds what."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from engines.connectors import PayloadLost
from engines.connectors.arena import PAGE_BYTES
from engines.connectors.contents import Content, Inline, Key, Shared
from engines.connectors.shared_memory import SharedMemoryConnector
from engines.payloads import Array, Payload

CAPACITY_BYTES = 16 * PAGE_BYTES
SCOPES = ("one", "two", "three")


class Arena(RuleBasedStateMachine):
    """`fills` is what each payload was filled with, `alive` which of them are not forgotten, `held` the views that live."""

    contents: Bundle[int] = Bundle("contents")

    def __init__(self) -> None:
        super().__init__()
        self.producer = SharedMemoryConnector(CAPACITY_BYTES)
        self.consumers = [SharedMemoryConnector(0), self.producer]
        self.fills: list[tuple[Content, int]] = []
        self.alive: dict[int, Key] = {}
        self.held: list[tuple[Payload, int]] = []

    @rule(target=contents, scope=st.sampled_from(SCOPES), nbytes=st.integers(8_193, 30_000))
    def put(self, scope: str, nbytes: int) -> int:
        number = len(self.fills)
        fill = number % 251
        key = Key(scope, number)
        content = self.producer.put(key, Payload(arrays={"bytes": Array.of(np.full(nbytes, fill, np.uint8))}))
        self.fills.append((content, fill))
        if isinstance(content, Shared):
            self.alive[number] = key
        return number

    @rule(number=contents, consumer=st.integers(0, 1))
    def read(self, number: int, consumer: int) -> None:
        content, fill = self.fills[number]
        if isinstance(content, Inline) or number in self.alive:
            self.held.append((self.consumers[consumer].read(content), fill))
            return
        with pytest.raises(PayloadLost, match="forgotten"):
            self.consumers[consumer].read(content)

    @rule(place=st.integers(0, 100))
    def drop(self, place: int) -> None:
        if self.held:
            self.held.pop(place % len(self.held))

    @rule(scope=st.sampled_from(SCOPES), before=st.one_of(st.none(), st.integers(0, 60)))
    def cleanup(self, scope: str, before: int | None) -> None:
        gone = [number for number, key in self.alive.items() if key.scope == scope and (before is None or key.seq < before)]
        assert self.producer.cleanup(scope, before) == len(gone)
        for number in gone:
            del self.alive[number]

    @invariant()
    def what_is_held_is_never_overwritten(self) -> None:
        for payload, fill in self.held:
            assert (payload.arrays["bytes"].numpy() == fill).all()

    @invariant()
    def what_is_not_forgotten_can_be_read(self) -> None:
        for scope in SCOPES:
            assert self.producer.holds(scope) == sum(key.scope == scope for key in self.alive.values())
        for number in self.alive:
            content, fill = self.fills[number]
            assert (self.consumers[0].read(content).arrays["bytes"].numpy() == fill).all()

    def teardown(self) -> None:
        self.held.clear()
        for scope in SCOPES:
            self.producer.cleanup(scope)
        everything = Payload(arrays={"bytes": Array.of(np.zeros(CAPACITY_BYTES, np.uint8))})
        assert isinstance(self.producer.put(Key("everything", 0), everything), Shared)
        assert [connector.health() for connector in self.consumers] == ["", ""]
        for connector in self.consumers:
            connector.close()


TestArena = Arena.TestCase
TestArena.settings = settings(max_examples=100, stateful_step_count=60)
