"""A plain aiortc client, the offering side of a call, that sends Opus packets as given and keeps what it receives.

    async with RtcClient() as client:                   # or RtcClient(channel=False, early=["…"], direction="recvonly", …)
        await client.connect(peer)                      # to a Peer of this process; or over HTTP:
        location = await client.call(http, url)         # POST url/v1/realtime/calls; raises CallRefused
        client.say(opus_packets)                        # each in its 20 ms slot; meanwhile and afterwards silence is sent
        await client.said()                             # the last of them is on its way
        client.send({"type": "response.create"})        # or a str, or bytes, as it is
        event = await client.event("response.done")     # the next such event that was not waited for before
        packet = await client.packet(lambda packet: …)  # the next such RTP packet
        report = await client.report(lambda report: …)  # the next such RTCP report about what it sends
        await client.send_rtp(packet)                   # as it is, header and all
        client.hush()                                   # from now on it only listens

`received` are all RTP packets with their time of arrival, taken below aiortc's jitter buffer, `messages` all messages of the
channel, `sizes` those of all datagrams. Misbehaviour: `await client.offer()` and nothing else never connects; `vanish()` falls
silent without a word; `early` messages follow the opening of the channel without waiting for its acknowledgement; `drop` loses
RTP packets that it would send.
"""

import asyncio
import fractions
import json
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple

import aiohttp
from aioice import Connection
from aioice.stun import Message
from aiortc import MediaStreamTrack, RTCConfiguration, RTCDataChannel, RTCIceServer, RTCPeerConnection, RTCSessionDescription
from aiortc.rtcsctptransport import WEBRTC_STRING, RTCSctpTransport
from aiortc.rtp import AnyRtcpPacket, RtcpReceiverInfo, RtcpRrPacket, RtcpSrPacket, RtpPacket, is_rtcp
from av.packet import Packet
from av.stream import Stream

from fakes.udp_relay import UdpRelay
from realtime.webrtc.offer import read_offer
from realtime.webrtc.peer import Peer

SILENCE = b"\xf8\xff\xfe"
"""20 ms of it, mono, as Opus codes it."""
SLOT_S = 0.02
SLOT_UNITS = 960
CLOSE_S = 10.0
"""Stock aiortc waits for ever for a task of its own that was cancelled, as all are when a test has run out of time."""

# pyright: reportPrivateUsage=false


class Received(NamedTuple):
    arrived_s: float
    """On the loop's clock."""
    sequence: int
    timestamp: int
    marker: bool
    payload: bytes


class CallRefused(Exception):
    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


class RtcClient:
    def __init__(
        self,
        *,
        channel: bool = True,
        label: str = "oai-events",
        direction: str = "sendrecv",
        silence: bytes | None = SILENCE,
        early: Iterable[str] = (),
        drop: Callable[[int], bool] = lambda place: False,
        addresses: Iterable[str] = ("127.0.0.1",),
        relay: UdpRelay | None = None,
        turn: RTCIceServer | None = None,
    ) -> None:
        """`silence`: what is sent while nothing is said; None: nothing. `drop` gets the place of an RTP packet among all.
        `relay`: all goes through it. `turn`: has an address there as well."""
        self.received: list[Received] = []
        self.messages: list[str | bytes] = []
        self.sizes: list[int] = []
        self.reports: list[RtcpReceiverInfo] = []
        self.opened = asyncio.Event()
        self.closed = asyncio.Event()
        """The connection has ended, by either side."""
        self.connection = RTCPeerConnection(RTCConfiguration([] if turn is None else [turn]))
        self.microphone = _Microphone(silence)
        self.channel: RTCDataChannel | None = None
        self._addresses = list(addresses)
        self._relay = relay
        self._drop = drop
        self._sent = 0
        self._connecting: asyncio.Task[Any] | None = None
        self._news = asyncio.Event()
        self._messages_seen = 0
        self._packets_seen = 0
        self._reports_seen = 0
        transceiver = self.connection.addTransceiver(self.microphone, direction=direction)
        self._hook(transceiver.receiver.transport.transport._connection)
        transceiver.receiver._handle_rtp_packet = self._packet_arrived
        self._handle_rtcp = transceiver.sender._handle_rtcp_packet
        transceiver.sender._handle_rtcp_packet = self._report_arrived
        self._transport = transceiver.receiver.transport
        self._send_rtp = self._transport._send_rtp
        self._transport._send_rtp = self._lossy
        self.connection.on("connectionstatechange", self._state_changed)
        if channel:
            self._open_channel(label, early)

    async def __aenter__(self) -> "RtcClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def sctp(self) -> RTCSctpTransport:
        assert self.connection.sctp is not None
        return self.connection.sctp

    @property
    def ice(self) -> Connection:
        return self._transport.transport._connection

    async def offer(self) -> str:
        await self.connection.setLocalDescription(await self.connection.createOffer())
        sdp = self.connection.localDescription.sdp
        return sdp if self._relay is None else self._relay.without_candidates(sdp)

    async def accept(self, answer: str) -> None:
        answer = answer if self._relay is None else self._relay.instead_of_server(answer)
        await self.connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    async def connect(self, peer: Peer) -> None:
        """Until media flows and, if there is one, the channel is open at both ends."""
        await self.accept(await peer.answer(read_offer(await self.offer())))
        await peer.connected.wait()
        if self.channel is not None and self.channel.label == "oai-events":
            await peer.channel_open.wait()
            await self.opened.wait()

    async def call(
        self,
        http: aiohttp.ClientSession,
        url: str,
        session: dict[str, Any] | None = None,
        resume: str | None = None,
        place: str | None = None,
    ) -> str:
        """The call's location. With `session` the body is multipart, as browsers' SDKs send it; `resume`: the token of a session
        to come back to; `place`: in the waiting room."""
        sdp = await self.offer()
        body: str | aiohttp.FormData = sdp
        headers = {"Content-Type": "application/sdp"}
        if session is not None:
            headers = {}
            body = aiohttp.FormData({"sdp": sdp, "session": json.dumps(session)}, default_to_multipart=True)
        query = {name: value for name, value in {"resume": resume, "queue": place}.items() if value is not None}
        async with http.post(f"{url}/v1/realtime/calls", data=body, headers=headers, params=query) as response:
            text = await response.text()
            if response.status != 201:
                raise CallRefused(response.status, text)
        await self.accept(text)
        return response.headers["Location"]

    def say(self, packets: Iterable[bytes]) -> None:
        self.microphone.waiting.extend(packets)
        self.microphone.idle.clear()

    async def said(self) -> None:
        await self.microphone.idle.wait()

    def send(self, event: dict[str, Any] | str | bytes) -> None:
        assert self.channel is not None
        self.channel.send(json.dumps(event) if isinstance(event, dict) else event)

    async def event(self, kind: str) -> dict[str, Any]:
        while True:
            event = json.loads(await self.message())
            if event["type"] == kind:
                return event

    async def message(self) -> str | bytes:
        """The next one, whatever it is."""
        while self._messages_seen == len(self.messages):
            await self._wait_for_news()
        self._messages_seen += 1
        return self.messages[self._messages_seen - 1]

    async def packet(self, condition: Callable[[Received], bool] = lambda packet: True) -> Received:
        while True:
            while self._packets_seen == len(self.received):
                await self._wait_for_news()
            self._packets_seen += 1
            if condition(self.received[self._packets_seen - 1]):
                return self.received[self._packets_seen - 1]

    async def report(self, condition: Callable[[RtcpReceiverInfo], bool] = lambda report: True) -> RtcpReceiverInfo:
        while True:
            while self._reports_seen == len(self.reports):
                await self._wait_for_news()
            self._reports_seen += 1
            if condition(self.reports[self._reports_seen - 1]):
                return self.reports[self._reports_seen - 1]

    async def send_rtp(self, packet: bytes) -> None:
        await self._send_rtp(packet)

    def hush(self) -> None:
        """Sends neither sound nor reports any more, and answers whoever asks whether it is there."""
        self._transport._send_rtp = _keep

    def vanish(self) -> None:
        for protocol in self.ice._protocols:
            protocol.datagram_received = _lose
            protocol.send_stun = _lose_message
            protocol.send_data = _lose_data

    async def close(self) -> None:
        """Stock aiortc would leave its connecting task behind when closed in the middle of it."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        async with asyncio.timeout(CLOSE_S):
            await self.connection.close()
        self.closed.set()

    def _open_channel(self, label: str, early: Iterable[str]) -> None:
        channel = self.channel = self.connection.createDataChannel(label)
        channel.on("open", self.opened.set)
        channel.on("message", self._message_arrived)
        self.sctp._data_channel_queue.extend((channel, WEBRTC_STRING, text.encode()) for text in early)

    def _hook(self, ice: Connection) -> None:
        """Its own addresses instead of all but loopback, and an eye on its datagrams and on the task that connects it."""
        gather, data_received, connect = ice.get_component_candidates, ice.data_received, ice.connect

        async def gather_here(component: int, addresses: list[str], timeout: int = 5) -> Any:
            return await gather(component, self._addresses, timeout)

        def measured(data: bytes, component: int) -> None:
            self.sizes.append(len(data))
            data_received(data, component)

        async def connect_here() -> None:
            self._connecting = asyncio.current_task()
            await connect()

        ice.get_component_candidates = gather_here
        ice.connect = connect_here
        ice.data_received = measured

    async def _lossy(self, data: bytes) -> None:
        if not is_rtcp(data):
            self._sent += 1
            if self._drop(self._sent - 1):
                return
        await self._send_rtp(data)

    async def _packet_arrived(self, packet: RtpPacket, arrival_time_ms: int) -> None:
        now_s = asyncio.get_running_loop().time()
        self.received.append(Received(now_s, packet.sequence_number, packet.timestamp, packet.marker == 1, packet.payload))
        self._news.set()

    async def _report_arrived(self, packet: AnyRtcpPacket) -> None:
        await self._handle_rtcp(packet)
        if isinstance(packet, RtcpRrPacket | RtcpSrPacket):
            self.reports += packet.reports
            self._news.set()

    def _message_arrived(self, message: str | bytes) -> None:
        self.messages.append(message)
        self._news.set()

    async def _wait_for_news(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _state_changed(self) -> None:
        if self.connection.connectionState in ("closed", "failed"):
            self.closed.set()


async def _keep(data: bytes) -> None:
    pass


def _lose(data: bytes | str, addr: tuple[Any, ...]) -> None:
    pass


def _lose_message(message: Message, addr: tuple[str, int]) -> None:
    pass


async def _lose_data(data: bytes, addr: tuple[str, int]) -> None:
    pass


class _Microphone(MediaStreamTrack):
    """Gives what is to be said, or else silence, a packet in each slot of 20 ms."""

    kind = "audio"

    def __init__(self, silence: bytes | None) -> None:
        super().__init__()
        self.waiting: deque[bytes] = deque()
        self.idle = asyncio.Event()
        self.idle.set()
        self._silence = silence
        self._slot = 0
        self._began_s: float | None = None

    async def recv(self) -> "Packet[Stream]":
        loop = asyncio.get_running_loop()
        if self._began_s is None:
            self._began_s = loop.time()
        while True:
            await asyncio.sleep(max(0.0, self._began_s + self._slot * SLOT_S - loop.time()))
            self._slot += 1
            payload = self.waiting.popleft() if self.waiting else self._silence
            if not self.waiting:
                self.idle.set()
            if payload is not None:
                packet: Packet[Stream] = Packet(payload)
                packet.pts = (self._slot - 1) * SLOT_UNITS
                packet.time_base = fractions.Fraction(1, 48_000)
                return packet
