"""The way to one server: one connection, and whatever is called while an exchange is under way goes out together in the next."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from redis.exceptions import RedisError

from sessions.store.interface import StoreDown
from sessions.store.wire import Answer, Command, Failure, Reply, Wire

LARGEST_BATCH = 256
LONGEST_QUEUE = 20_000
"""Calls. Overflow policy `refuse`: at 3,000 calls/s these would wait for seven seconds."""
FIRST_PAUSE_S = 0.05


class Call:
    """`answer` is awaited by whoever called; they may have gone."""

    __slots__ = ("answer", "asking", "command", "key", "tries")

    def __init__(self, key: str, command: Command, answer: asyncio.Future[Reply]) -> None:
        self.key = key
        self.command = command
        self.answer = answer
        self.asking = False
        self.tries = 0

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


Failed: TypeAlias = Sequence[tuple[Call, Failure]]


class Lane:
    """`failed` says what becomes of calls that got an error; it returns whether the server seems to be gone. Then pauses grow to
    `longest_pause_s`."""

    def __init__(self, wire: Wire, failed: Callable[[Failed], Awaitable[bool]], longest_pause_s: float) -> None:
        self._wire = wire
        self._failed = failed
        self._longest_pause_s = longest_pause_s
        self._waiting: deque[Call] = deque()
        self._wanted = asyncio.Event()
        self._lost_in_a_row = 0
        self._running = asyncio.create_task(self._run(), name="store lane")

    @property
    def is_lost(self) -> bool:
        """The last exchange did not reach the server, nor did the one before."""
        return self._lost_in_a_row > 1

    def submit(self, call: Call) -> None:
        if len(self._waiting) >= LONGEST_QUEUE:
            call.fail(StoreDown(f"{LONGEST_QUEUE} calls are waiting for it", 1.0))
            return
        self._waiting.append(call)
        self._wanted.set()

    def resubmit(self, calls: Sequence[Call]) -> None:
        """Before whatever has been called since: of two writes to one session the first is to be the first."""
        self._waiting.extendleft(reversed(calls))
        self._wanted.set()

    async def close(self) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])
        for call in self._waiting:
            call.fail(StoreDown("the connection is being closed", 1.0))
        await self._wire.close()

    async def _run(self) -> None:
        batch: list[Call] = []
        try:
            while True:
                await self._wanted.wait()
                batch = [call for call in self._take() if not call.answer.done()]
                if batch:
                    await self._exchange(batch)
        finally:
            for call in batch:
                call.fail(StoreDown("the connection is being closed", 1.0))

    def _take(self) -> list[Call]:
        taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), LARGEST_BATCH))]
        if not self._waiting:
            self._wanted.clear()
        return taken

    async def _exchange(self, batch: Sequence[Call]) -> None:
        failed: list[tuple[Call, Failure]] = []
        for call, reply in zip(batch, await self._send(batch), strict=True):
            if isinstance(reply, RedisError | OSError):
                failed.append((call, reply))
            elif not call.answer.done():
                call.answer.set_result(reply)
        if not failed or not await self._failed(failed):
            self._lost_in_a_row = 0
            return
        self._lost_in_a_row += 1
        if self.is_lost:
            longest_s = min(self._longest_pause_s, FIRST_PAUSE_S * 2 ** min(self._lost_in_a_row, 10))
            await asyncio.sleep(random.uniform(longest_s / 2, longest_s))

    async def _send(self, batch: Sequence[Call]) -> Sequence[Answer]:
        commands: list[Command] = []
        for call in batch:
            if call.asking:
                commands.append(("ASKING",))
            commands.append(call.command)
        replies = iter(await self._wire.exchange(commands))
        return [(next(replies), next(replies))[1] if call.asking else next(replies) for call in batch]
