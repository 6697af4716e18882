"""The network between one client and the server: UDP on loopback that can be cut, lose packets, or move to another port.

async with UdpRelay() as relay, RtcClient(relay=relay) as client:
    await client.connect(peer)
    relay.cut()                              # from now on nothing passes, either way
    relay.mend()
    relay.loss = 0.3                         # share of the datagrams that is lost, each way
    await relay.move()                       # the server sees the client at another port, as behind a NAT that forgot
    await relay.passed(10)                   # until so many more have gone from the client to the server
    relay.inject(relay.sent[-1])             # as if the client had sent it now: `sent` are its last datagrams
"""

import asyncio
import random
import re
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

_CANDIDATE = re.compile(r"a=candidate:[^\r\n]*\r?\n")
_LOOPBACK = re.compile(r"a=candidate:\S+ 1 udp \S+ 127\.0\.0\.1 ([0-9]+) typ host", re.IGNORECASE)


class UdpRelay:
    def __init__(self, seed: int = 0) -> None:
        self.loss = 0.0
        self.is_cut = False
        self._chance = random.Random(seed)
        self._client: tuple[str, int] | None = None
        self._server: tuple[str, int] | None = None
        self._passed = self._returned = 0
        self._knocked = False
        self.sent: deque[bytes] = deque(maxlen=64)
        self._news = asyncio.Event()

    async def __aenter__(self) -> "UdpRelay":
        self._front = await _socket(self._to_server)
        self._back = await _socket(self._to_client)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._front.close()
        self._back.close()

    def without_candidates(self, offer: str) -> str:
        """The server cannot reach the client but by the way of its checks."""
        return _CANDIDATE.sub("", offer)

    def instead_of_server(self, answer: str) -> str:
        """The client finds this relay where the server says that it is."""
        found = _LOOPBACK.search(answer)
        assert found is not None, answer
        self._server = ("127.0.0.1", int(found[1]))
        here = f"a=candidate:relay 1 udp 2130706431 127.0.0.1 {self.port} typ host\r\n"
        return _CANDIDATE.sub("", answer).replace("a=end-of-candidates\r\n", here + "a=end-of-candidates\r\n")

    def cut(self) -> None:
        self.is_cut = True

    def mend(self) -> None:
        self.is_cut = False

    async def move(self) -> None:
        self._back.close()
        self._back = await _socket(self._to_client)

    async def passed(self, count: int) -> None:
        until = self._passed + count
        while self._passed < until:
            await self._more()

    async def returned(self, count: int) -> None:
        """Until so many more have gone from the server to the client."""
        until = self._returned + count
        while self._returned < until:
            await self._more()

    async def knocked(self) -> None:
        """Until the server has sent something this way, and be it in vain."""
        while not self._knocked:
            await self._more()

    @property
    def port(self) -> int:
        """Where the client sends to."""
        return self._front.get_extra_info("sockname")[1]

    @property
    def back_port(self) -> int:
        """Where the server sees the client."""
        return self._back.get_extra_info("sockname")[1]

    @property
    def server(self) -> tuple[str, int]:
        assert self._server is not None, "there is no answer yet"
        return self._server

    def inject(self, data: bytes) -> None:
        self._back.sendto(data, self._server)

    def _to_server(self, data: bytes, address: tuple[str, int]) -> None:
        self._client = address
        self.sent.append(data)
        if self._passes():
            self._back.sendto(data, self._server)
            self._passed += 1
            self._news.set()

    def _to_client(self, data: bytes, address: tuple[str, int]) -> None:
        self._knocked = self._knocked or address == self._server
        if self._client is not None and self._passes():
            self._front.sendto(data, self._client)
            self._returned += 1
        self._news.set()

    async def _more(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _passes(self) -> bool:
        return not self.is_cut and self._chance.random() >= self.loss


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, received: Callable[[bytes, tuple[str, int]], None]) -> None:
        self._received = received

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        self._received(data, (addr[0], addr[1]))


async def _socket(received: Callable[[bytes, tuple[str, int]], None]) -> asyncio.DatagramTransport:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(received), local_addr=("127.0.0.1", 0))
    return transport
