"""Calls of Functions, and blocking reads of streams. Whoever calls gets an answer or StoreDown, in `timeout_s`."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from redis.exceptions import AskError, MovedError, RedisError, ResponseError

from sessions.store.eviction import warn_of_eviction
from sessions.store.failures import NoPrimary, is_lost, is_missing_function, may_be_tried_again, store_down
from sessions.store.interface import CallWatch, StoreDown
from sessions.store.lane import Call, Failed, Lane
from sessions.store.library import Library
from sessions.store.replies import understood
from sessions.store.servers import Place, Servers, asked_place
from sessions.store.wire import Failure, Reply, Wire

TIMEOUT_S = 2.0
"""Twenty times what a server under load takes, a fifth of the default lease."""
MOST_TRIES = 4
"""All Functions may be repeated."""
Argument: TypeAlias = str | bytes | int
StreamEntry: TypeAlias = tuple[str, Mapping[bytes, bytes]]
Streams: TypeAlias = list[tuple[bytes, list[tuple[bytes, list[bytes]]]]] | None
"""As XREAD replies: name of the stream, its entries, each with its id and its fields and values in turn."""


class StoreConnection:
    def __init__(self, servers: Servers, library: Library, timeout_s: float) -> None:
        self._servers = servers
        self._library = library
        self._timeout_s = timeout_s
        self.watch: CallWatch = _nobody
        self._lanes: dict[Place, Lane] = {}
        self._readers: dict[Place, list[Wire]] = {}
        """Those that nobody reads from now."""

    async def open(self) -> None:
        """Finds the servers and gives each the library. Raises StoreDown."""
        try:
            await self._servers.look()
            for place in self._servers.primaries():
                await self._load(place)
                await self._warn_of_eviction(place)
        except (RedisError, OSError) as error:
            raise store_down(error) from None

    async def call(self, function: str, keys: Sequence[str], arguments: Sequence[Argument] = ()) -> Reply:
        """All `keys` are in one slot. Calls of one tick of the loop to one server go out together, in this order. A caller that
        is cancelled disturbs nobody; its call may be carried out."""
        began = time.perf_counter()
        try:
            reply = await self._answer(function, keys, arguments)
        except StoreDown:
            self.watch(function, time.perf_counter() - began, False)
            raise
        self.watch(function, time.perf_counter() - began, True)
        return reply

    async def _answer(self, function: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Reply:
        command = ("FCALL", self._library.function(function), len(keys), *keys, *arguments)
        call = Call(keys[0], command, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(self._timeout_s):
                self._submit(call)
                return await call.answer
        except TimeoutError:
            raise self._too_late() from None

    async def read_stream(self, key: str, after: str, wait_s: float) -> Sequence[StreamEntry]:
        """What has come after the entry `after`, at latest after `wait_s`; on a connection of its own."""
        place = self._place(key)
        idle = self._readers.setdefault(place, [])
        wire = idle.pop() if idle else self._servers.wire(place, reads_block=True)
        try:
            async with asyncio.timeout(wait_s + self._timeout_s):
                reply = await wire.ask("XREAD", "BLOCK", max(1, round(wait_s * 1000)), "STREAMS", key, after)
        except (RedisError, OSError) as error:  # asyncio's TimeoutError among the second
            if is_lost(error) or isinstance(error, MovedError):
                await wire.close()
                await self._look()
            raise store_down(error) from None
        finally:
            idle.append(wire)
        streams: Streams = understood(reply, Streams)
        return [
            (entry.decode(), dict(zip(flat[::2], flat[1::2], strict=True)))
            for _, entries in streams or ()
            for entry, flat in entries
        ]

    async def close(self) -> None:
        for lane in self._lanes.values():
            await lane.close()
        for wire in (wire for idle in self._readers.values() for wire in idle):
            await wire.close()

    # ── within

    def _submit(self, call: Call) -> None:
        try:
            self._lane(self._place(call.key)).submit(call)
        except StoreDown as error:
            call.fail(error)

    def _place(self, key: str) -> Place:
        try:
            return self._servers.place(key)
        except NoPrimary as error:
            raise store_down(error) from None

    def _lane(self, place: Place) -> Lane:
        if place not in self._lanes:
            # each call is tried once within its time, also after a pause
            self._lanes[place] = Lane(self._servers.wire(place), lambda failed: self._failed(place, failed), self._timeout_s / 2)
        return self._lanes[place]

    async def _failed(self, place: Place, failed: Failed) -> bool:
        """Calls to this server were answered with an error. Returns whether it seems to be gone."""
        errors = [error for _, error in failed]
        lost = any(map(is_lost, errors))
        trouble: StoreDown | None = None
        if any(map(is_missing_function, errors)):
            trouble = await self._given_the_library(place)
        if lost or any(isinstance(error, MovedError) for error in errors):
            await self._look()
        again: dict[Place, list[Call]] = {}
        for call, error in failed:
            call.tries += 1
            hopeless = call.tries >= MOST_TRIES or (is_lost(error) and self._lanes[place].is_lost)
            try:
                if trouble or hopeless or not may_be_tried_again(error):
                    raise trouble or store_down(error)
                again.setdefault(self._next_place(call, error), []).append(call)
            except StoreDown as refused:
                call.fail(refused)
        for target, calls in again.items():
            self._lane(target).resubmit(calls)
        return lost

    def _next_place(self, call: Call, error: Failure) -> Place:
        """Raises StoreDown."""
        call.asking = isinstance(error, AskError) and not isinstance(error, MovedError)
        return asked_place(error) if isinstance(error, AskError) and call.asking else self._place(call.key)

    async def _given_the_library(self, place: Place) -> StoreDown | None:
        try:
            await self._load(place)
        except (RedisError, OSError) as error:
            return store_down(error)
        return None

    async def _load(self, place: Place) -> None:
        wire = self._servers.wire(place)
        try:
            await wire.ask("FUNCTION", "LOAD", self._library.text)
        except ResponseError as error:
            if "already exists" not in str(error):
                raise
        finally:
            await wire.close()

    async def _warn_of_eviction(self, place: Place) -> None:
        wire = self._servers.wire(place)
        try:
            await warn_of_eviction(wire)
        finally:
            await wire.close()

    async def _look(self) -> None:
        """As far as anybody can tell: else all stays as it was known."""
        with suppress(RedisError, OSError, StoreDown):
            await self._servers.look()

    def _too_late(self) -> StoreDown:
        return StoreDown(f"it has not answered in {self._timeout_s} s", 1.0)


def _nobody(_function: str, _took_s: float, _worked: bool) -> None:
    """Measures."""
