"""Where the keys are: one server (also the one that Sentinel names), or the primaries of a Cluster, by slot."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, cast

import msgspec
from redis.asyncio.connection import ConnectionPool
from redis.crc import key_slot
from redis.exceptions import AskError, RedisError

from sessions.store.failures import NoPrimary
from sessions.store.replies import understood
from sessions.store.wire import Failure, Reply, Wire

Place: TypeAlias = tuple[str, int]
"""Host and port."""
MakePool: TypeAlias = Callable[[Place, bool], ConnectionPool]


class Servers(Protocol):
    def place(self, key: str) -> Place:
        """Raises NoPrimary."""
        ...

    def primaries(self) -> Sequence[Place]: ...

    def wire(self, place: Place, *, reads_block: bool = False) -> Wire:
        """A new one. `reads_block`: without a limit to how long an answer may take."""
        ...

    async def look(self) -> None:
        """Where they are now. Raises what Redis raises when nobody can tell."""
        ...


class OneServer:
    def __init__(self, pool: MakePool, place: Place) -> None:
        self._pool = pool
        self._place = place

    def place(self, key: str) -> Place:
        return self._place

    def primaries(self) -> Sequence[Place]:
        return (self._place,)

    def wire(self, place: Place, *, reads_block: bool = False) -> Wire:
        return Wire(self._pool(place, reads_block))

    async def look(self) -> None:
        """It is where it is."""


class SentinelServers:
    """All Sentinels are asked, and most of those that answer are believed: one may not have heard of a failover yet."""

    def __init__(self, pool: MakePool, sentinel_pool: MakePool, sentinels: Sequence[Place], service: str) -> None:
        self._pool = pool
        self._sentinel_pool = sentinel_pool
        self._sentinels = tuple(sentinels)
        self._service = service
        self._primary: Place | None = None

    def place(self, key: str) -> Place:
        if self._primary is None:
            raise NoPrimary(f"no Sentinel knows {self._service!r}")
        return self._primary

    def primaries(self) -> Sequence[Place]:
        return (self.place(""),)

    def wire(self, place: Place, *, reads_block: bool = False) -> Wire:
        return Wire(self._pool(place, reads_block))

    async def look(self) -> None:
        answers = await asyncio.gather(*map(self._asked, self._sentinels))
        named = Counter(answer for answer in answers if isinstance(answer, tuple))
        if named:
            self._primary = named.most_common(1)[0][0]
            return
        failures = [answer for answer in answers if isinstance(answer, RedisError | OSError)]
        raise failures[0] if len(failures) == len(answers) else NoPrimary(f"no Sentinel knows {self._service!r}")

    async def _asked(self, sentinel: Place) -> Place | Failure | None:
        wire = Wire(self._sentinel_pool(sentinel, False))
        try:
            reply = await wire.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
        except (RedisError, OSError) as error:
            return error
        finally:
            await wire.close()
        found = understood(reply, tuple[bytes, bytes] | None)
        return None if found is None else (found[0].decode(), int(found[1]))


def asked_place(error: AskError) -> Place:
    """Where the slot is being moved to."""
    return cast(Place, error.node_addr)  # pyright: ignore[reportUnknownMemberType]  untyped


class ClusterServers:
    """`seeds` are asked when none of those known answers."""

    def __init__(self, pool: MakePool, seeds: Sequence[Place]) -> None:
        self._pool = pool
        self._seeds = tuple(seeds)
        self._slots: Mapping[int, Place] = {}

    def place(self, key: str) -> Place:
        place = self._slots.get(key_slot(key.encode()))
        if place is None:
            raise NoPrimary(f"no primary has the slot of {key[:80]!r}")
        return place

    def primaries(self) -> Sequence[Place]:
        return tuple(dict.fromkeys(self._slots.values()))

    def wire(self, place: Place, *, reads_block: bool = False) -> Wire:
        return Wire(self._pool(place, reads_block))

    async def look(self) -> None:
        failure: Failure = NoPrimary("no server of the cluster is known")
        for place in dict.fromkeys((*self.primaries(), *self._seeds)):
            wire = self.wire(place)
            try:
                self._slots = _slots(await wire.ask("CLUSTER", "SLOTS"), place)
            except (RedisError, OSError) as error:
                failure = error
            else:
                return
            finally:
                await wire.close()
        raise failure


class _Server(msgspec.Struct, array_like=True):
    host: bytes | None
    port: int


class _Range(msgspec.Struct, array_like=True):
    """Of slots, in the reply to CLUSTER SLOTS; its replicas follow."""

    first: int
    last: int
    primary: _Server


def _slots(reply: Reply, asked: Place) -> Mapping[int, Place]:
    slots: dict[int, Place] = {}
    for found in understood(reply, list[_Range]):
        # a server that does not know its own address leaves it empty
        host = found.primary.host.decode() if found.primary.host else asked[0]
        slots.update(dict.fromkeys(range(found.first, found.last + 1), (host, found.primary.port)))
    return slots
