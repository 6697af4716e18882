"""Between hosts: the payload waits at its producer, and each consumer fetches it over an authenticated connection."""

import asyncio
import secrets
import time
from collections.abc import Callable

from engines.connectors import PayloadLost, PayloadTooLarge
from engines.connectors.contents import Content, Inline, Key, Outline, Remote
from engines.connectors.faults import Faults
from engines.connectors.fetching import Wanted, answer, fetch, wanted
from engines.connectors.held import Held
from engines.connectors.inline import INLINE_LIMIT_BYTES
from engines.connectors.layout import outline
from engines.connectors.peer import Peer
from engines.network.addresses import TcpAddress, address
from engines.network.handshake import DoorFull
from engines.network.raw_connection import RawConnection
from engines.payloads import Payload

NAME = "tcp"
INLINE_BELOW_BYTES = 32 << 10
"""Up to here the copies through the gateway cost less than the round trip of a fetch."""
LIMIT_BYTES = 512 << 20
"""What a producer holds at a time; beyond it payloads travel inline, or are refused when they are too large for that."""
PATIENCE_S = 5.0
SLOWEST_BYTES_S = 4 << 20
"""A fetch, and the sending of one, may take PATIENCE_S and as long as its bytes need at this rate: 32 Mbit/s."""
CROWDED_PAUSE_S = 0.1
"""Between two tries at a producer that has no room now."""
IDLE_LIMIT_S = 60.0
"""After this a producer hangs up on a silent consumer; consumers hang up earlier by themselves."""


class TcpConnector:
    """`public` is where others reach this process's door for payloads, which calls `serve`; None: it only fetches.

    Belongs to one event loop."""

    def __init__(
        self,
        public: TcpAddress | None,
        secret: bytes,
        *,
        limit_bytes: int = LIMIT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.faults = Faults("payloads over TCP", clock)
        self.secret = secret
        self._token = secrets.token_hex(8)
        self._address = f"{public}/{self._token}" if public else ""
        self._limit_bytes = limit_bytes
        self._held: Held[Payload] = Held()
        """Bounded by `limit_bytes`; policy: inline, then refuse."""
        self._held_bytes = 0
        self._peers: dict[TcpAddress, Peer] = {}
        self._closed = False

    def put(self, key: Key, payload: Payload) -> Content:
        nbytes = payload.nbytes
        fits = bool(self._address) and not self._closed and self._held_bytes + nbytes <= self._limit_bytes
        if nbytes > INLINE_BELOW_BYTES and fits:
            self._held_bytes += nbytes - sum(replaced.nbytes for replaced in self._held.add(key, payload))
            return Remote(outline(key, payload), NAME, self._address)
        if nbytes > INLINE_LIMIT_BYTES:
            raise PayloadTooLarge(nbytes, max(self._limit_bytes, INLINE_LIMIT_BYTES) if self._address else INLINE_LIMIT_BYTES)
        return Inline(payload)

    async def get(self, content: Content) -> Payload:
        if isinstance(content, Inline):
            return content.payload
        key = content.outline.key
        if not isinstance(content, Remote) or content.by != NAME:
            raise PayloadLost(key, f"it does not travel by {NAME}")
        if self._closed:
            raise PayloadLost(key, "the connector is closed")
        if content.address == self._address:
            found = self._held.find(key)
        else:
            found = await self._fetched(content)
        if found is None:
            raise PayloadLost(key, f"{content.address} does not have it any more")
        return found

    def cleanup(self, scope: str, before: int | None = None) -> int:
        forgotten = self._held.take(scope, before)
        self._held_bytes -= sum(payload.nbytes for payload in forgotten)
        return len(forgotten)

    def holds(self, scope: str) -> int:
        return self._held.count(scope)

    def health(self) -> str:
        return self.faults.sentence()

    def close(self) -> None:
        self._closed = True
        self._held.take_all()
        self._held_bytes = 0
        for peer in self._peers.values():
            peer.close()

    async def serve(self, connection: RawConnection) -> None:
        """A consumer's connection, which has proved itself, to its end. Raises OSError."""
        while (request := await _next(connection)) is not None:
            found = self._held.find(request.key) if request.token == self._token else None
            async with asyncio.timeout(limit_s(found.nbytes if found else 0)):
                await answer(connection, request.key, found)

    async def _fetched(self, content: Remote) -> Payload | None:
        key = content.outline.key
        try:
            producer, token = _located(content.address)
            async with asyncio.timeout(limit_s(content.nbytes)):
                return await self._fetched_when_there_is_room(producer, token, content.outline)
        except TimeoutError as late:
            self.faults.note(f"{content.address} did not send {content.nbytes} bytes in {limit_s(content.nbytes):.1f} s")
            raise PayloadLost(key, self.faults.last) from late
        except (OSError, ValueError) as failed:
            self.faults.note(f"{content.address}: {failed}")
            raise PayloadLost(key, self.faults.last) from failed

    async def _fetched_when_there_is_room(self, producer: TcpAddress, token: str, wanted: Outline) -> Payload | None:
        while True:
            try:
                async with self._peer(producer).connection() as connection:
                    return await fetch(connection, token, wanted)
            except DoorFull as full:
                self.faults.note(f"{producer}: {full}")
            await asyncio.sleep(CROWDED_PAUSE_S)

    def _peer(self, producer: TcpAddress) -> Peer:
        if producer not in self._peers:
            self._forget_peers()
            self._peers[producer] = Peer(producer, self.secret)
        return self._peers[producer]

    def _forget_peers(self) -> None:
        """Ports change when workers restart."""
        for known, peer in list(self._peers.items()):
            if not peer.in_use:
                peer.close()
                del self._peers[known]


async def _next(connection: RawConnection) -> Wanted | None:
    """None: the consumer has gone, or needs nothing for long."""
    try:
        async with asyncio.timeout(IDLE_LIMIT_S):
            return await wanted(connection)
    except TimeoutError:
        return None


def _located(remote: str) -> tuple[TcpAddress, str]:
    """Where to fetch, and the token of who should be there. Raises ValueError."""
    place, _, token = remote.rpartition("/")
    match address(place):
        case TcpAddress() as producer:
            return producer, token
        case other:
            raise ValueError(f"address: expected tcp://host:port, got {other}")


def limit_s(nbytes: int) -> float:
    """How long a transfer of so much may take."""
    return PATIENCE_S + nbytes / SLOWEST_BYTES_S
