"""The answering side of one WebRTC connection: an ICE link, DTLS and SRTP on it, one audio stream each way, one data channel."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from realtime.together import together
from realtime.webrtc.answer import Ours, write_answer
from realtime.webrtc.audio_streams import UNTOLD_LOSS, AudioStreams
from realtime.webrtc.candidates import RemoteCandidate
from realtime.webrtc.channel import MAX_MESSAGE_BYTES, ChannelClosed, EventsChannel, MessageTooLarge
from realtime.webrtc.dtls import SecureLink
from realtime.webrtc.ice import IceLink
from realtime.webrtc.liveness import LOST_AFTER_S, Liveness
from realtime.webrtc.offer import Offer
from realtime.webrtc.packets import AudioPacket, PacketSource
from realtime.webrtc.settings import WebRtcSettings

__all__ = ["ChannelClosed", "MessageTooLarge", "Peer", "PeerEnd"]

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 2.0

PeerEnd: TypeAlias = Literal["left", "lost", "closed"]
"""left: the client said goodbye, or fell silent after it had closed its data channel. lost: no sign of life for 2.4 s, or it
never came. closed: by this side."""


class Peer:
    """`answer` once, then it lives in a task of its own until either side ends it; `close` in any state.

    connected: ICE and DTLS are up, media flows. closed: it failed or was closed by either side, and nothing of it is left.
    channel_open: the client has opened `oai-events`. end: how it ended, once it has.
    """

    def __init__(
        self,
        settings: WebRtcSettings,
        source: PacketSource,
        on_packet: Callable[[AudioPacket], None],
        on_message: Callable[[str | bytes], None],
    ) -> None:
        self.connected = asyncio.Event()
        self.closed = asyncio.Event()
        self.channel_open = asyncio.Event()
        self.has_channel = False
        self.end: PeerEnd = "closed"
        self._liveness = Liveness()
        self._ice: IceLink | None = None
        self._settings = settings
        self._source = source
        self._on_packet = on_packet
        self._on_message = on_message
        self._stop = asyncio.Event()
        self._streams: AudioStreams | None = None
        self._channel: EventsChannel | None = None
        self._life: asyncio.Task[None] | None = None

    async def answer(self, offer: Offer) -> str:
        """The SDP answer. Raises Refusal (503) when no UDP port is free, ConnectionError after `close`."""
        ice = IceLink(self._settings, offer, self._liveness.sign)
        gathering = asyncio.create_task(ice.gather_candidates())
        try:
            await asyncio.shield(gathering)
            if self._stop.is_set():
                raise ConnectionError("closed before it was answered")
        except BaseException:
            await asyncio.wait([gathering])  # uvloop loses a socket when its opening is cancelled
            await ice.close()
            raise
        streams = AudioStreams(offer, self._on_packet)
        link = SecureLink(ice, offer, self._liveness, streams.receive, streams.receive_report)
        self._ice, self._streams = ice, streams
        self.has_channel = offer.has_channel
        if offer.has_channel:
            self._channel = EventsChannel(link, offer, self._on_message, self.channel_open)
        self._life = asyncio.create_task(self._live(ice, link, streams, self._channel))
        return write_answer(offer, _ours(ice, link, streams))

    async def add_candidates(self, candidates: Iterable[RemoteCandidate]) -> None:
        """Addresses at which the client is besides those that it offered. Ignored before `answer`."""
        if self._ice is not None:
            await self._ice.add_candidates(candidates)

    @property
    def reported_loss(self) -> float:
        """Part of what was sent lately that did not reach the client, 0 to 1."""
        return UNTOLD_LOSS if self._streams is None else self._streams.reported_loss

    def silent_s(self) -> float:
        """Since the last sign of life: sound, reports, data, checks, answers to ours. After 1 s the client is asked."""
        return self._liveness.silent_s()

    def ask(self) -> None:
        """A client that is there gives a sign of life."""
        if self._ice is not None:
            self._ice.ask()

    async def send(self, text: bytes) -> None:
        """On `oai-events`, as a text message. Waits until it is open, and while more than 256 KiB wait. Raises ChannelClosed,
        MessageTooLarge."""
        if self._channel is None:
            raise ChannelClosed
        await self._channel.send(text)

    @property
    def is_delivered(self) -> bool:
        """The client has acknowledged all that it was sent on `oai-events`."""
        return self._channel is not None and self._channel.is_delivered

    async def ended(self) -> None:
        """Returns when nothing is left of an answered connection. Raises what broke it, if it was a fault of ours."""
        if self._life is not None:
            await asyncio.shield(self._life)

    async def close(self) -> None:
        """Within two seconds; afterwards no task, thread, socket or descriptor is left."""
        self._stop.set()
        if self._life is None:
            self.closed.set()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self.closed.wait()
        except TimeoutError:
            log.error("a peer did not end within %g s; it is left to itself", CLOSE_TIMEOUT_S)
            self.closed.set()

    async def _live(self, ice: IceLink, link: SecureLink, streams: AudioStreams, channel: EventsChannel | None) -> None:
        """What breaks it stays in the task, for `ended`."""
        try:
            await together(self._until_stopped(), self._talk(ice, link, streams, channel))
        except ConnectionError as end:
            self.end = self._how(link, channel)
            log.info("a peer ends: %s: %s", self.end, end)
        finally:
            try:
                if channel is not None:
                    await channel.close()
                await link.close()
                await ice.close()
            finally:
                self.closed.set()

    async def _talk(self, ice: IceLink, link: SecureLink, streams: AudioStreams, channel: EventsChannel | None) -> None:
        await ice.connect()
        await link.connect()
        self._liveness.sign()  # a handshake may take longer than a silence
        self.connected.set()
        if channel is not None:
            await channel.open()
        lost = self._until_lost(ice)
        await together(streams.send(self._source, link), streams.report(link), _until_ended(link), lost)

    def _how(self, link: SecureLink, channel: EventsChannel | None) -> PeerEnd:
        if link.left or (channel is not None and channel.left):
            return "left"
        return "closed" if self._stop.is_set() else "lost"

    async def _until_stopped(self) -> None:
        await self._stop.wait()
        raise ConnectionError("closed by this side")

    async def _until_lost(self, ice: IceLink) -> None:
        await self._liveness.lost(ice.ask)
        raise ConnectionError(f"no sign of life for {LOST_AFTER_S} s")


async def _until_ended(link: SecureLink) -> None:
    await link.ended.wait()
    raise ConnectionError("closed by the client")


def _ours(ice: IceLink, link: SecureLink, streams: AudioStreams) -> Ours:
    candidates = ice.announced_candidates()
    return Ours(
        host=candidates[0].host,
        port=candidates[0].port,
        candidates=tuple(candidate.to_sdp() for candidate in candidates),
        ice_username=ice.local_username,
        ice_password=ice.local_password,
        fingerprint=link.fingerprint,
        ssrc=streams.ssrc,
        cname=streams.cname,
        session_id=secrets.randbits(62),
        max_message_bytes=MAX_MESSAGE_BYTES,
    )
