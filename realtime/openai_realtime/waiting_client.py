"""A client whose session has no seat yet: it is listened to, so that we notice when it leaves, and told its place if it asks."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, NoReturn

import msgspec
from aiohttp import WSCloseCode

from realtime.errors import Refusal
from realtime.openai_realtime.connection import OFF_LOOP_BYTES
from realtime.openai_realtime.server_events import EventEncoder, SessionQueued
from realtime.openai_realtime.wire import Ended, Wire
from realtime.together import together
from sessions.store.records import Waiting

MOST_KEPT = 64
MOST_KEPT_BYTES = 1 << 20
"""What a client says before it has its session. Overflow policy: block, until it is known whether it has to wait. Who has to wait
is not heard meanwhile; overflow policy of what else it says: refuse, by ending the connection."""
SOUND = "input_audio_buffer.append"


class _Kind(msgspec.Struct):
    type: str


class _Kept(NamedTuple):
    """A Refusal stands for a message of another kind: its session answers it."""

    message: bytes | Refusal
    is_sound: bool

    @property
    def size_bytes(self) -> int:
        return 0 if isinstance(self.message, Refusal) else len(self.message)


_kind = msgspec.json.Decoder(_Kind)


class WaitingClient:
    """The wire of a connection, while it has no session and afterwards. `upgrade` makes a WebSocket of the request. `tells`: the
    client wants to hear of its place."""

    def __init__(self, wire: Wire, upgrade: Callable[[], Awaitable[None]], *, tells: bool) -> None:
        self._wire = wire
        self._upgrade = upgrade
        self._tells = tells
        self._upgrading = asyncio.Lock()
        self._upgraded = asyncio.Event()
        self._kept: deque[_Kept] = deque()
        self._encoder = EventEncoder("queue")
        self._place: Waiting | None = None
        self._placed = asyncio.Event()
        self._has_to_wait = asyncio.Event()

    def hear(self, place: Waiting) -> None:
        """Of its place in the waiting room. Overflow policy: latest."""
        if place != self._place:
            self._place = place
            self._placed.set()
            self._has_to_wait.set()

    @property
    def had_to_wait(self) -> bool:
        return self._has_to_wait.is_set()

    async def upgrade(self) -> None:
        """At the latest when the client has to wait. Raises Ended."""
        async with self._upgrading:
            if not self._upgraded.is_set():
                await self._upgrade()
                self._upgraded.set()

    @asynccontextmanager
    async def waiting(self) -> AsyncGenerator[None]:
        """Around what waits for a seat. Raises Ended when the client has gone meanwhile."""
        until_gone = asyncio.timeout(None)
        watch = asyncio.create_task(self._watch(until_gone))
        try:
            async with until_gone:
                try:
                    yield
                finally:
                    await self._end(watch)
        except TimeoutError:
            if not until_gone.expired():
                raise
            raise watch.result() from None

    async def receive(self) -> bytes:
        if not self._kept:
            return await self._wire.receive()
        kept = self._kept.popleft().message
        if isinstance(kept, Refusal):
            raise kept
        return kept

    async def send(self, text: bytes) -> None:
        await self._wire.send(text)

    @property
    def is_delivered(self) -> bool:
        return self._wire.is_delivered

    async def _watch(self, until_gone: asyncio.Timeout) -> Ended:
        try:
            await together(self._listen(), self._tell())
        except Ended as ended:
            until_gone.reschedule(0)
            return ended
        raise RuntimeError("neither ends by itself")

    async def _end(self, watch: asyncio.Task[Ended]) -> None:
        try:
            async with self._upgrading:  # half an upgrade would be neither HTTP nor a WebSocket
                pass
        finally:
            watch.cancel()
            await asyncio.wait([watch])
        if not watch.cancelled():
            watch.result()  # raises what was no end

    async def _listen(self) -> NoReturn:
        await self._upgraded.wait()
        while True:
            try:
                await self._keep(await self._wire.receive())
            except Refusal as refused:
                self._kept.append(_Kept(refused, is_sound=False))
            if self._is_full:
                await self._has_to_wait.wait()
            if self._has_to_wait.is_set():
                self._forget_sound()

    async def _keep(self, message: bytes) -> None:
        is_sound = await asyncio.to_thread(_is_sound, message) if len(message) >= OFF_LOOP_BYTES else _is_sound(message)
        self._kept.append(_Kept(message, is_sound))

    def _forget_sound(self) -> None:
        """What is said to nobody is not to be heard minutes later."""
        self._kept = deque(kept for kept in self._kept if not kept.is_sound)
        if self._is_full:
            raise Ended(WSCloseCode.TRY_AGAIN_LATER, "too much was sent before there was a session")

    @property
    def _is_full(self) -> bool:
        return len(self._kept) > MOST_KEPT or sum(kept.size_bytes for kept in self._kept) > MOST_KEPT_BYTES

    async def _tell(self) -> NoReturn:
        while True:
            await self._placed.wait()
            self._placed.clear()
            await self.upgrade()
            if self._tells and self._place is not None:
                event = SessionQueued(position=self._place.position, estimate_s=self._place.estimate_s)
                await self.send(self._encoder.encode(event))


def _is_sound(message: bytes) -> bool:
    try:
        return _kind.decode(message).type == SOUND
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False  # its session will say what is wrong with it
