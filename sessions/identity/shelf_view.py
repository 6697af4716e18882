"""A shelf of the store as this node sees it: read once in a while, so that a request costs no round trip."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from sessions.store.interface import KeyStore, StoreDown

log = logging.getLogger(__name__)

FRESH_S = 5.0
"""What has been removed is believed for so long at most."""
SOONEST_S = 0.1
MOST_LOOKS = 10
"""In SOONEST_S, at single records, however often something is asked for that is not there: a whole shelf of 10,000 takes the loop
9 ms. Policy: what is asked for beyond them counts as not there."""
RETRY_S = 1.0
"""While the store is down. Meanwhile nobody waits for it."""
STALE_S = 60.0
"""While the store is down, what was seen last is believed for so long: longer than a failover takes."""

T = TypeVar("T", bound=msgspec.Struct)


class ShelfView(Generic[T]):
    """`shape` is what the records are, as JSON. `clock` is monotonic, in seconds."""

    def __init__(self, store: KeyStore, shelf: str, shape: type[T], clock: Callable[[], float]) -> None:
        self._store = store
        self._shelf = shelf
        self._decoder = msgspec.json.Decoder(shape)
        self._clock = clock
        self._reading = asyncio.Lock()
        self._records: dict[str, T] = {}
        self._read_at_s = self._failed_at_s = -math.inf
        self._looks_since_s = -math.inf
        self._looks = 0
        self._down = StoreDown("it has not been asked yet", RETRY_S)
        self._unreadable: set[str] = set()

    async def records(self) -> Mapping[str, T]:
        """By name, at most FRESH_S old; older while somebody looks, or the store is down, up to STALE_S. Raises StoreDown."""
        if not (self._reading.locked() and self._age_s <= STALE_S):
            await self._see()
        return self._records

    async def find(self, name: str) -> T | None:
        """One that is new is found SOONEST_S later at most; FRESH_S while very many are asked for. Raises StoreDown."""
        found = (await self.records()).get(name)
        if found is None and self._age_s > SOONEST_S and self._may_look():
            found = await self._look(name)
        return found

    @property
    def _age_s(self) -> float:
        return self._clock() - self._read_at_s

    async def _see(self) -> None:
        if self._age_s > FRESH_S:
            async with self._reading:  # who waits here finds what the first one has read
                if self._age_s > FRESH_S:
                    await self._read()

    def _may_look(self) -> bool:
        now_s = self._clock()
        if now_s - self._looks_since_s > SOONEST_S:
            self._looks_since_s, self._looks = now_s, 0
        self._looks += 1
        return self._looks <= MOST_LOOKS and now_s - self._failed_at_s > RETRY_S

    async def _look(self, name: str) -> T | None:
        """For that record alone. While the store is down there is none that was not there before."""
        try:
            value = await self._store.get(self._shelf, name)
        except StoreDown as down:
            self._failed(down)
            return None
        found = {} if value is None else self._decoded({name: value})
        self._records.update(found)
        return found.get(name)

    def forget(self) -> None:
        """This node has changed the shelf itself."""
        self._read_at_s = -math.inf

    async def _read(self) -> None:
        now_s = self._clock()
        if now_s - self._failed_at_s > RETRY_S:
            try:
                self._records = self._decoded(await self._store.shelf(self._shelf))
                self._read_at_s = now_s
                return
            except StoreDown as down:
                self._failed(down)
        if self._age_s > STALE_S:
            raise self._down.with_traceback(None)

    def _failed(self, down: StoreDown) -> None:
        self._down = down
        self._failed_at_s = self._clock()

    def _decoded(self, shelf: Mapping[str, bytes]) -> dict[str, T]:
        records: dict[str, T] = {}
        for name, value in shelf.items():
            try:
                records[name] = self._decoder.decode(value)
            except msgspec.MsgspecError as wrong:
                if name not in self._unreadable:
                    log.error("%s: record %r of the store is not understood, and counts as none: %s", self._shelf, name, wrong)
                    self._unreadable.add(name)
        return records
