"""A call that costs its client next to nothing, so that one core bears many: the handshake and the data channel are aiortc's, the
sound is ours. Packets are encoded before; of what arrives only the header is read, which SRTP leaves open.

When a packet arrived is the kernel's word (SO_TIMESTAMPNS): however late this process wakes, the figure is none of its doing.
"""

import asyncio
import os
import secrets
import socket
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import aiohttp

from fakes.rtc_client import SLOT_S, SLOT_UNITS, RtcClient
from realtime.webrtc.packets import AudioPacket
from realtime.webrtc.rtp import write_rtp

# pyright: reportPrivateUsage=false

OPUS = 96
"""The payload type that aiortc offers it with."""
SO_TIMESTAMPNS = 35
"""Linux; Python has no name for it."""
CONNECT_TIMEOUT_S = 10.0
READ_AT_ONCE = 64


class Arrival(NamedTuple):
    at_s: float
    """On the wall clock of this machine, by the kernel."""
    timestamp: int
    """RTP's, in 48 kHz units."""


class LeanCall:
    """`packets` are said again and again from `start` on, beginning with the one at `first`; `arrivals` is what came back."""

    def __init__(self, packets: Sequence[bytes], first: int) -> None:
        self.client = RtcClient(silence=None)
        self.client.microphone.recv = _nothing
        self.arrivals: list[Arrival] = []
        self._packets = packets
        self._next = first % len(packets)
        self._sent = 0
        self._ssrc = secrets.randbits(32)
        self._timer: asyncio.TimerHandle | None = None

    async def connect(self, http: aiohttp.ClientSession, url: str, session: dict[str, Any] | None = None) -> str:
        """The call's location."""
        location = await self.client.call(http, url, session)
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await self.client.opened.wait()
        self._take_over()
        return location

    def start(self, after_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._began_s = loop.time() + after_s
        self._timer = loop.call_at(self._began_s, self._send)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
        await self.client.close()

    def _take_over(self) -> None:
        """From now on the socket is read here. What is no sound goes on to aiortc."""
        pair = next(iter(self.client.ice._nominated.values()))
        self._protocol, self._remote = pair.protocol, pair.remote_addr
        taken = self._protocol.transport.get_extra_info("socket").fileno()
        loop: Any = asyncio.get_running_loop()
        loop._remove_reader(taken)
        self._socket = socket.socket(fileno=os.dup(taken))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        loop.add_reader(self._socket, self._readable)

    def _readable(self) -> None:
        for _ in range(READ_AT_ONCE):
            try:
                data, ancillary, _, address = self._socket.recvmsg(2048, 64)
            except BlockingIOError:
                return
            if 128 <= data[0] < 192:
                self._heard(data, ancillary)
            else:
                self._protocol.datagram_received(data, address)

    def _heard(self, data: bytes, ancillary: list[tuple[int, int, bytes]]) -> None:
        if 192 <= data[1] < 224:
            return  # RTCP
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
        (timestamp,) = struct.unpack_from("!L", data, 4)
        self.arrivals.append(Arrival(seconds + nanoseconds / 1e9, timestamp))

    def _send(self) -> None:
        audio = AudioPacket(self._sent & 0xFFFF, self._sent * SLOT_UNITS & 0xFFFF_FFFF, self._packets[self._next])
        packet = write_rtp(self._ssrc, OPUS, marker=self._sent == 0, audio=audio)
        self._socket.sendto(self.client.connection.getTransceivers()[0].sender.transport._tx_srtp.protect(packet), self._remote)
        self._next = (self._next + 1) % len(self._packets)
        self._sent += 1
        self._timer = asyncio.get_running_loop().call_at(self._began_s + self._sent * SLOT_S, self._send)


async def _nothing() -> Any:
    """aiortc's own sender has nothing to send."""
    await asyncio.Event().wait()
