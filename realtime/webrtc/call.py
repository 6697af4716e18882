"""One call: a peer, its media and its session's attachment, from the offer to the end. The transport's one funnel."""

import asyncio
import contextlib
import logging
from contextlib import AbstractAsyncContextManager
from typing import NoReturn

import msgspec

from realtime.context import AppContext
from realtime.errors import SERVER, Refusal, refusal
from realtime.media.call_codecs import Voice
from realtime.openai_realtime.connection import Connection
from realtime.openai_realtime.opening import not_opened
from realtime.openai_realtime.session_config import WireSession
from realtime.openai_realtime.session_patch import SessionPatch
from realtime.openai_realtime.wire import Ended
from realtime.queue_place import PARAMETER, session_at
from realtime.together import unless
from realtime.turned_away import told_to_wait
from realtime.webrtc.channel_wire import ChannelWire, Mailbox
from realtime.webrtc.loudspeaker import Loudspeaker
from realtime.webrtc.microphone import Microphone
from realtime.webrtc.offer import Offer
from realtime.webrtc.outlet import Outlet
from realtime.webrtc.pacer import Pacer
from realtime.webrtc.packets import AudioPacket
from realtime.webrtc.peer import Peer
from realtime.webrtc.trickle import Fragment, check_session
from realtime.webrtc.turn import with_relay
from sessions.admission.admission import HasToWait, NotAdmitted, Stay
from sessions.admission.node import SeatTaken
from sessions.identity.principal import Principal
from sessions.retention.resume_tokens import HeldElsewhere, ResumeRefused, Superseded
from sessions.store.interface import StoreDown
from sessions.voice.attached import Attached, Dismissal
from sessions.voice.commands import AppendAudio, CommandRefused
from sessions.voice.playout import Playout, Spawn

log = logging.getLogger(__name__)

SEAT_RETRY_S = 5
RETURN_WAIT_S = 2.0
"""For the seat of a session whose own was lent: its client tries again, and until then somebody may leave."""
NOBODY_WAITS = "the client left before it was answered"


class Return(msgspec.Struct, frozen=True):
    """To the session that gave `token`, with what `patch` changes of it. The client has all up to `last_seq`; None: it does not
    say."""

    token: str
    patch: SessionPatch
    last_seq: int | None = None


class Call:
    """`principal` asks for it. `session`: what a new one begins with, or the one to come back to. `held`: a client that closes
    its connection may come back, as a page does that is loaded again; only a hang-up is a goodbye. `place` is its name in the
    waiting room, for which it asks again; None: it does not wait. `answer` gets the SDP answer, or the Refusal. Cancel it when
    nobody waits for it any more."""

    def __init__(
        self,
        context: AppContext,
        call_id: str,
        offer: Offer,
        session: WireSession | Return,
        principal: Principal,
        *,
        held: bool,
        place: str | None,
    ) -> None:
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._context = context
        self._call_id = call_id
        self._offer = offer
        self._wanted = session
        self._principal = principal
        self._held = held
        self._place = place
        self._hung_up = asyncio.Event()
        self._connection: Connection | None = None
        self._mailbox = Mailbox()
        sound = offer.sound
        self._microphone = Microphone(context.call_media, sound.codec)
        self._outlet = Outlet(self._voice, lambda: self._peer.silent_s(), lambda: self._peer.ask())
        pacer = Pacer(self._outlet, context.metrics.slots_skipped.inc, codec=sound.codec, sparing=sound.sparing)
        settings = with_relay(context.settings.webrtc, context.turn)
        self._peer = Peer(settings, pacer, self._arrived, self._mailbox.arrived)
        self._wire = ChannelWire(self._peer, self._mailbox, call_id)

    def hang_up(self) -> None:
        self._hung_up.set()

    async def trickle(self, fragment: Fragment) -> None:
        """Raises Refusal (422)."""
        check_session(fragment, self._offer.ice_username)
        await self._peer.add_candidates(fragment.candidates)

    async def run(self) -> None:
        """Until one side ends it. Then nothing of it is left, but for a session that waits for its client."""
        refused = Refusal("the server failed; its log tells how", status=500, type=SERVER, code="internal_error")
        try:
            await self._talk()
        except (NotAdmitted, StoreDown, ResumeRefused, HeldElsewhere, Superseded) as none:
            refused = not_opened(none)
        except HasToWait as queued:
            refused = told_to_wait(queued, self._place or "")
        except SeatTaken as taken:
            refused = Refusal(f"{PARAMETER}: this place has become a session", status=409, code="place_taken", field=PARAMETER)
            log.info("a place was asked for twice: %s", taken)
        except CommandRefused as wish:
            refused = refusal(wish)
        except Refusal as said:
            refused = said
        except Ended as ended:
            log.info("the call ends: %s", ended.reason)
            refused = Refusal(f"call: {ended.reason}", status=503, code="call_ended", type=SERVER, retry_after_s=SEAT_RETRY_S)
        except Exception:
            log.exception("a call failed")
        finally:
            await self._peer.close()
            if not self.answer.done():
                self.answer.set_exception(refused)

    async def _talk(self) -> None:
        if self.answer.cancelled():
            raise Ended(reason=NOBODY_WAITS)
        async with self._attachment() as attached:
            try:
                connection = self._connection = self._join(attached)
                await self._answer(attached)
                log.info("call %s is answered", self._call_id)
                await self._converse(attached, connection)
            finally:
                if self._is_over():
                    attached.leave()

    async def _answer(self, attached: Attached) -> None:
        """Raises Ended when nobody waits for the answer any more, and Refusal (409) when another connection has taken over."""
        ends = self._until_hung_up(), self._until_dismissed(attached), self._until_nobody_waits()
        answer = await unless(self._peer.answer(self._offer), *ends)
        if self.answer.cancelled():
            raise Ended(reason=NOBODY_WAITS)
        self.answer.set_result(answer)

    def _attachment(self) -> AbstractAsyncContextManager[Attached]:
        sessions, wanted, place = self._context.voice_sessions, self._wanted, self._place
        if isinstance(wanted, Return):
            stay = Stay(longest_s=RETURN_WAIT_S)
            return sessions.resume(wanted.token, self._loudspeaker, wanted.last_seq, self._principal, stay)
        stay = Stay(longest_s=0) if place is None else Stay(visit=session_at(place, self._principal.tenant))
        return sessions.open(wanted.config, self._loudspeaker, self._principal, stay)

    def _is_over(self) -> bool:
        """Nobody will come back: the client said goodbye, or had never come."""
        never_came = not isinstance(self._wanted, Return) and not self._peer.connected.is_set()
        left = self._peer.end == "left" and not self._held
        return self._hung_up.is_set() or left or never_came

    def _loudspeaker(self, before: Playout | None, spawn: Spawn) -> Playout:
        codec = self._offer.sound.codec
        speaker = before if isinstance(before, Loudspeaker) and before.codec == codec else None
        if speaker is None:
            speaker = Loudspeaker(self._context.call_media, spawn, self._context.metrics.slots_dry.inc, codec)
        speaker.plug(self._outlet)
        self._speaker = speaker
        return speaker

    def _join(self, attached: Attached) -> Connection:
        patch: SessionPatch | None = None
        if isinstance(self._wanted, Return):
            patch = None if self._wanted.patch == SessionPatch() else self._wanted.patch
        else:
            self._context.known_sessions.of(attached.session_id).shown = self._wanted
        self._outlet.muted = lambda: attached.muted
        return Connection(self._context, self._wire, attached, self._speaker, patch)

    async def _converse(self, attached: Attached, connection: Connection) -> NoReturn:
        ended = Ended()
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in (
                    self._obey_and_tell(connection),
                    self._hear(attached),
                    self._tell_notices(connection),
                    self._connect_in_time(),
                    self._until_closed(),
                    self._until_hung_up(),
                ):
                    tasks.create_task(work)
        except* Ended as group:
            ended = next(end for end in group.exceptions if isinstance(end, Ended))
        raise ended

    async def _obey_and_tell(self, connection: Connection) -> NoReturn:
        raise await connection.run()

    def _arrived(self, packet: AudioPacket) -> None:
        self._microphone.arrived(packet)
        if self._connection is not None:
            self._connection.heard_from()

    async def _hear(self, attached: Attached) -> None:
        async def append(pcm: bytes) -> None:
            with contextlib.suppress(CommandRefused):  # a full buffer: a microphone cannot be told to wait
                await attached.handle(AppendAudio(pcm))

        await self._peer.connected.wait()
        with self._context.metrics.hearing.of_call(self._microphone.statistics):
            await self._microphone.run(append)

    def _voice(self) -> Voice:
        return self._offer.sound.voice(self._peer.reported_loss)

    async def _tell_notices(self, connection: Connection) -> NoReturn:
        while True:
            await connection.say(await self._outlet.notices.get())

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
        raise Ended(reason=f"the connection ended: {self._peer.end}")

    async def _until_hung_up(self) -> NoReturn:
        await self._hung_up.wait()
        raise Ended(reason="the client hung up")

    async def _until_dismissed(self, attached: Attached) -> NoReturn:
        await attached.dismissed.wait()
        if attached.why is not Dismissal.SUPERSEDED:
            raise Ended(reason="the session has ended")
        raise not_opened(Superseded())

    async def _until_nobody_waits(self) -> NoReturn:
        await asyncio.wait({self.answer})
        raise Ended(reason=NOBODY_WAITS)
