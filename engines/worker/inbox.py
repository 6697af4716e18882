"""What has been pushed into a request and its engine has not taken yet: bridged, joined, in order, counted for each source."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from engines.messages.to_worker import PUSH_WINDOW
from engines.models import InvalidInput
from engines.payloads import Payload
from engines.pipeline import Bridge
from engines.worker.ways_in import WaysIn


class Input(NamedTuple):
    """`pushed_at` is in seconds of the engine's clock; `completes` is the source whose push gave this input as its last one."""

    payload: Payload
    pushed_at: float
    completes: str | None


@dataclass(slots=True)
class Source:
    """`untaken` counts its pushes, `promised_all` is set with the arrival of its final one."""

    bridge: Bridge | None
    untaken: int = 0
    promised_all: bool = False


class Inbox:
    def __init__(self, stage: str, ways_in: WaysIn, taken: Callable[[str], None]) -> None:
        """`taken` is called with a source whenever it may push once more."""
        self.inputs: deque[Input] = deque()
        """Bounded by PUSH_WINDOW pushes of each source; overflow policy: refuse (the gateway broke the contract)."""
        self.ended_at: float | None = None
        """When the last input of all sources was there, in seconds of the engine's clock."""
        self._stage = stage
        self._sources = {name: Source(bridge) for name, bridge in ways_in.bridges.items()}
        self._join = ways_in.join
        self._unended = set(self._sources)
        self._taken = taken

    def expect(self, source: str, *, final: bool) -> None:
        """A push has arrived, and its payload will follow. Raises InvalidInput."""
        way = self._sources.get(source)
        if way is None:
            expected = ", ".join(repr(name) for name in self._sources)
            raise InvalidInput(f"source of input for stage {self._stage!r}: expected {expected}, got {source!r}")
        if way.promised_all:
            raise InvalidInput(f"stage {self._stage!r}: expected no input after the final one, got more")
        if way.untaken >= PUSH_WINDOW:
            raise InvalidInput(f"stage {self._stage!r}: expected at most {PUSH_WINDOW} pushes not yet taken, got more")
        way.untaken += 1
        way.promised_all = final

    def feed(self, source: str, payload: Payload, *, final: bool, now: float) -> None:
        """The payload of the oldest push expected. Raises whatever the bridge or the join raises."""
        made = self._joined(source, self._bridged(source, payload, final=final), final=final)
        for one in made[:-1]:
            self.inputs.append(Input(one, now, None))
        if made:
            self.inputs.append(Input(made[-1], now, source))
        else:
            self._complete(source)
        if final:
            self._unended.discard(source)
            self.ended_at = None if self._unended else now

    def take(self) -> Input:
        """The oldest input; its source may push another one for it."""
        oldest = self.inputs.popleft()
        if oldest.completes is not None:
            self._complete(oldest.completes)
        return oldest

    def _bridged(self, source: str, payload: Payload, *, final: bool) -> list[Payload]:
        bridge = self._sources[source].bridge
        something = bool(payload.text or payload.arrays or payload.attributes)
        if bridge is None:
            return [payload] if something else []
        made = bridge.feed(payload) if something else []
        return [*made, *bridge.finish()] if final else made

    def _joined(self, source: str, bridged: list[Payload], *, final: bool) -> list[Payload]:
        if self._join is None:
            return bridged
        made = [one for payload in bridged for one in self._join.feed(source, payload)]
        return [*made, *self._join.finish(source)] if final else made

    def _complete(self, source: str) -> None:
        self._sources[source].untaken -= 1
        self._taken(source)
