"""DTLS and SRTP over the ICE link. aiortc's transport does the cryptography; what it decrypts comes out here at once."""

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from aiortc import RTCCertificate, RTCDtlsFingerprint, RTCDtlsParameters, RTCDtlsTransport, RTCIceTransport
from OpenSSL import SSL

from realtime.webrtc.ice import IceLink
from realtime.webrtc.ice_port import FIRST_RTP
from realtime.webrtc.liveness import Liveness
from realtime.webrtc.offer import Fingerprint, Offer
from realtime.webrtc.srtp_streams import SrtpStreams

log = logging.getLogger(__name__)

CANCEL_AGAIN_S = 0.1


class SecureLink(RTCDtlsTransport):
    """`on_rtp`, `on_rtcp` get decrypted packets in the order of arrival. `ended` is set once it has closed or failed. All that is
    decrypted is a sign of life."""

    def __init__(
        self,
        ice: IceLink,
        offer: Offer,
        liveness: Liveness,
        on_rtp: Callable[[bytes], None],
        on_rtcp: Callable[[bytes], None],
    ) -> None:
        self._srtp_streams = SrtpStreams()
        super().__init__(cast(RTCIceTransport, _Carrier(ice, self._srtp_streams)), [RTCCertificate.generateCertificate()])
        self.ended = asyncio.Event()
        self.liveness = liveness
        self._on_rtp = on_rtp
        self._on_rtcp = on_rtcp
        self._remote = RTCDtlsParameters([RTCDtlsFingerprint(known.algorithm, known.value) for known in offer.fingerprints])
        self._set_role("client" if offer.setup == "active" else "server")
        self.on("statechange", self._state_changed)

    @property
    def fingerprint(self) -> Fingerprint:
        """Of our certificate, by the digest that every client knows."""
        known = self.getLocalParameters().fingerprints
        return next(Fingerprint(ours.algorithm, ours.value) for ours in known if ours.algorithm == "sha-256")

    @property
    def left(self) -> bool:
        """The client has said goodbye."""
        return self._ssl is not None and self._ssl.get_shutdown() & SSL.RECEIVED_SHUTDOWN != 0

    async def connect(self) -> None:
        """The handshake. Raises ConnectionError when it fails, also because the certificate is not the one that was offered."""
        await self.start(self._remote)
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError  # aiortc waits by asyncio.wait_for, which before Python 3.12 can lose a cancellation
        if self.state != "connected":
            raise ConnectionError("the DTLS handshake failed")

    async def send(self, data: bytes) -> None:
        """An RTP or RTCP packet, to be encrypted. Raises ConnectionError when not connected."""
        await self._send_rtp(data)

    async def close(self) -> None:
        """Tells the client, in any state; afterwards no task is left."""
        pump = self._task
        await self.stop()
        if pump is not None:
            await self._end(pump)
        self.remove_all_listeners()

    async def _end(self, pump: asyncio.Future[None]) -> None:
        while not pump.done():
            pump.cancel()  # again, for the reason above
            await asyncio.wait([pump], timeout=CANCEL_AGAIN_S)
        if not pump.cancelled() and (failure := pump.exception()) is not None:
            log.error("a call's packets could not be handled", exc_info=failure)

    def _state_changed(self) -> None:
        if self.state in ("closed", "failed"):
            self.ended.set()

    async def _handle_rtp_data(self, data: bytes, arrival_time_ms: int) -> None:
        self._srtp_streams.note(data)
        self.liveness.sign()
        self._on_rtp(data)

    async def _handle_rtcp_data(self, data: bytes) -> None:
        self._srtp_streams.note(data)
        self.liveness.sign()
        self._on_rtcp(data)


class _Carrier:
    """What aiortc's DTLS needs of an ICE transport."""

    def __init__(self, ice: IceLink, streams: SrtpStreams) -> None:
        self.role = "controlled"
        self._ice = ice
        self._streams = streams
        self._send = ice.send

    async def _recv(self) -> bytes:
        while True:
            data = await self._ice.recv()
            if data[0] < FIRST_RTP or self._streams.admits(data):
                return data
