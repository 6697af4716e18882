"""One call: a peer, its media and its session, from the offer to the end. The transport's one funnel."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import NoReturn

from realtime.context import AppContext
from realtime.errors import SERVER, ErrorBody, Refusal
from realtime.media.call_codecs import Voice
from realtime.openai_realtime import server_events
from realtime.openai_realtime.connection import Connection
from realtime.openai_realtime.server_events import ServerEvent
from realtime.openai_realtime.session_config import WireSession
from realtime.openai_realtime.wire import Ended
from realtime.webrtc.channel_wire import ChannelWire, Mailbox
from realtime.webrtc.loudspeaker import Loudspeaker
from realtime.webrtc.microphone import Microphone
from realtime.webrtc.offer import Offer
from realtime.webrtc.pacer import Pacer
from realtime.webrtc.peer import Peer
from realtime.webrtc.playout import Playout
from realtime.webrtc.trickle import Fragment, check_session
from realtime.webrtc.turn import with_relay
from sessions.commands import AppendAudio, CommandRefused
from sessions.manager import SeatRefused
from sessions.voice import VoiceSession

log = logging.getLogger(__name__)

MAX_NOTICES = 64
"""What the playout tells the client. Overflow policy: refuse; a client that takes none of so many has other troubles."""
SEAT_RETRY_S = 5


class Call:
    """`answer` gets the SDP answer, or the Refusal. Cancel it when nobody waits for it any more."""

    def __init__(self, context: AppContext, call_id: str, offer: Offer, config: WireSession) -> None:
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._context = context
        self._call_id = call_id
        self._offer = offer
        self._config = config
        self._hung_up = asyncio.Event()
        self._notices: asyncio.Queue[ServerEvent] = asyncio.Queue(MAX_NOTICES)
        self._mailbox = Mailbox()
        self._tasks = asyncio.TaskGroup()
        playout = Playout(self._playback_started, self._playback_stopped, context.metrics.slots_dry.inc)
        self._loudspeaker = Loudspeaker(context.call_media, playout, self._spawn, self._sound_lost, self._voice)
        sound = offer.sound
        self._microphone = Microphone(context.call_media, sound.codec)
        pacer = Pacer(playout, context.metrics.slots_skipped.inc, codec=sound.codec, sparing=sound.sparing)
        settings = with_relay(context.settings.webrtc, context.turn)
        self._peer = Peer(settings, pacer, self._microphone.arrived, self._mailbox.arrived)

    def hang_up(self) -> None:
        self._hung_up.set()

    async def trickle(self, fragment: Fragment) -> None:
        """Raises Refusal (422)."""
        check_session(fragment, self._offer.ice_username)
        await self._peer.add_candidates(fragment.candidates)

    async def run(self) -> None:
        """Until one side ends it. Then nothing of it is left."""
        refused = Refusal("the server failed; its log tells how", status=500, type=SERVER, code="internal_error")
        try:
            await self._talk()
        except SeatRefused as full:
            refused = Refusal(str(full), status=503, code="session_limit_reached", type=SERVER, retry_after_s=SEAT_RETRY_S)
        except Refusal as refusal:
            refused = refusal
        except Ended as ended:
            log.info("the call ends: %s", ended.reason)
        except Exception:
            log.exception("a call failed")
        finally:
            await self._peer.close()
            if not self.answer.done():
                self.answer.set_exception(refused)

    async def _talk(self) -> None:
        sessions = self._context.voice_sessions
        async with sessions.open(self._config.config, self._loudspeaker) as (session, attachment):
            answer = await self._peer.answer(self._offer)
            if self.answer.cancelled():
                raise Ended(reason="the client left before it was answered")
            self.answer.set_result(answer)
            log.info("call %s is answered", self._call_id)
            await self._converse(session, attachment.session_id)

    async def _converse(self, session: VoiceSession, session_id: str) -> None:
        wire = ChannelWire(self._peer, self._mailbox, self._call_id)
        connection = Connection(self._context, wire, session, session_id, self._config, self._loudspeaker)
        ended = Ended()
        try:
            async with self._tasks:
                for work in (
                    self._obey_and_tell(connection),
                    self._hear(session),
                    self._tell_notices(connection),
                    self._connect_in_time(),
                    self._until_closed(),
                    self._until_hung_up(),
                ):
                    self._tasks.create_task(work)
        except* Ended as group:
            ended = next(end for end in group.exceptions if isinstance(end, Ended))
        raise ended

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        return self._tasks.create_task(work)

    async def _obey_and_tell(self, connection: Connection) -> NoReturn:
        raise await connection.run()

    async def _hear(self, session: VoiceSession) -> None:
        async def append(pcm: bytes) -> None:
            with contextlib.suppress(CommandRefused):  # a full buffer: a microphone cannot be told to wait
                await session.handle(AppendAudio(pcm))

        await self._peer.connected.wait()
        with self._context.metrics.hearing.of_call(self._microphone.statistics):
            await self._microphone.run(append)

    def _voice(self) -> Voice:
        return self._offer.sound.voice(self._peer.reported_loss)

    async def _tell_notices(self, connection: Connection) -> NoReturn:
        while True:
            await connection.say(await self._notices.get())

    async def _connect_in_time(self) -> None:
        began_at, limit_s = self._context.clock(), self._context.settings.webrtc.connect_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                await self._peer.connected.wait()
        except TimeoutError:
            raise Ended(reason=f"no media came within {limit_s:g} s") from None
        self._context.metrics.call_connect.observe(self._context.clock() - began_at)

    async def _until_closed(self) -> NoReturn:
        await self._peer.ended()
        raise Ended

    async def _until_hung_up(self) -> NoReturn:
        await self._hung_up.wait()
        raise Ended(reason="the client hung up")

    def _playback_started(self, response_id: str) -> None:
        self._notify(server_events.PlaybackStarted(response_id=response_id))

    def _playback_stopped(self, response_id: str) -> None:
        self._notify(server_events.PlaybackStopped(response_id=response_id))

    def _sound_lost(self, message: str) -> None:
        log.warning("%s", message)
        self._notify(server_events.Error(error=ErrorBody(message=message, type=SERVER, code="sound_lost")))

    def _notify(self, notice: ServerEvent) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._notices.put_nowait(notice)
