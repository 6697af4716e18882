"""Pushes into one request in their order, whether their payloads are here already or must be fetched."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Protocol

from engines.connectors import PayloadLost
from engines.connectors.contents import Content, Inline
from engines.messages.to_worker import Push
from engines.payloads import Payload
from engines.worker.foreign import attempt, attempt_async

PATIENCE_S = 10.0
SLOWEST_BYTES_S = 2 << 20
"""A payload that has not come after PATIENCE_S and what its bytes need at this rate (16 Mbit/s) is lost. Connectors that bound
their own fetches are stricter, and know more of what went wrong."""


class Reader(Protocol):
    """The process's connectors, as somebody who reads payloads sees them."""

    def read(self, content: Content) -> Payload | None:
        """None: it must be fetched. Raises PayloadLost."""
        ...

    async def get(self, content: Content) -> Payload:
        """Raises PayloadLost."""
        ...


class Arrivals:
    """What is here goes on at once. What must be fetched is fetched by a task, and what comes after it waits for that, without
    holding up any other request."""

    def __init__(
        self,
        reader: Reader,
        spawn: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
        feed: Callable[[Push, Payload], None],
        fail: Callable[[Exception], None],
    ) -> None:
        """`feed` may raise; `fail` hears of that, and of payloads that are lost."""
        self._reader = reader
        self._spawn = spawn
        self._feed = feed
        self._fail = fail
        self._waiting: deque[Push] = deque()
        """Bounded by the inbox, which counts them as pushes not taken."""
        self._fetching: asyncio.Task[None] | None = None

    def add(self, push: Push) -> None:
        if self._fetching is not None:
            self._waiting.append(push)
            return
        payload = attempt(self._reader.read, push.content)
        if payload is None:
            self._waiting.append(push)
            self._fetching = self._spawn(self._fetch())
        else:
            self._hand_on(push, payload)

    def stop(self) -> None:
        self._waiting.clear()
        if self._fetching is not None:
            self._fetching.cancel()

    async def _fetch(self) -> None:
        while self._waiting:
            payload = await attempt_async(self._fetched(self._waiting[0].content))
            self._hand_on(self._waiting.popleft(), payload)
        self._fetching = None

    async def _fetched(self, content: Content) -> Payload:
        if isinstance(content, Inline):
            return content.payload
        limit_s = PATIENCE_S + content.nbytes / SLOWEST_BYTES_S
        try:
            async with asyncio.timeout(limit_s):
                return await self._reader.get(content)
        except TimeoutError as late:
            raise PayloadLost(content.outline.key, f"it did not come within {limit_s:g} s") from late

    def _hand_on(self, push: Push, payload: Payload | Exception) -> None:
        outcome = payload if isinstance(payload, Exception) else attempt(self._feed, push, payload)
        if isinstance(outcome, Exception):
            self._fail(outcome)
