"""What one session says on the wire: its events in their numbered order, over all its connections."""

import msgspec
from msgspec import UNSET, UnsetType

from realtime.openai_realtime import server_events as wire
from realtime.openai_realtime.resync import resync
from realtime.openai_realtime.server_events import EventEncoder, Object, Resume, ServerEvent
from realtime.openai_realtime.session_config import WireSession, shown_session
from realtime.openai_realtime.session_patch import OpenObject
from realtime.openai_realtime.sound_out import SoundOut
from realtime.openai_realtime.translation import translate
from sessions.retention.journal import Said
from sessions.store.records import Entry
from sessions.voice import events
from sessions.voice.config import VoiceConfig
from sessions.voice.teller import Bearer


class _Kept(msgspec.Struct, frozen=True):
    """What another node needs to know, beside what the session itself does."""

    tracing: str | OpenObject | None = None


_kept = msgspec.msgpack.Decoder(_Kept)


class Script:
    """`shown` is the session as its client knows it. `state` is that of the script before, on another node."""

    def __init__(self, session_id: str, config: VoiceConfig, state: bytes = b"") -> None:
        kept = _kept.decode(state) if state else _Kept()
        self.shown = WireSession(config, kept.tracing)
        self._session_id = session_id
        self._encoder = EventEncoder(session_id)
        self._sound_out = SoundOut()

    @property
    def seq(self) -> int:
        return self._encoder.seq

    def begin(self, fence: int, seq: int | None = None) -> None:
        self._encoder.attachment = fence
        if seq is not None:
            self._encoder.seq = seq

    def state(self) -> bytes:
        return msgspec.msgpack.encode(_Kept(self.shown.tracing))

    def write(self, event: events.Event, bearer: Bearer | None) -> tuple[Said, ...]:
        match event:
            case events.Opened(config):
                return (self._opened(config, bearer),)
            case events.Reopened():
                return (self._reopened(event, bearer), *(self._anew(entry) for entry in event.untold))
            case events.Resumed():
                return (self._resumed(event, bearer), *(_again(entry) for entry in event.missed))
            case events.Configured(config):
                return (self._updated(config, bearer),)
            case events.Expiring(config, ends_at):
                return (self._updated(config, bearer, int(ends_at)),)
            case _:
                return tuple(self._said(each) for each in self._translated(event))

    def say(self, event: ServerEvent) -> Said:
        """What is not of the session's making."""
        return self._said(event)

    def _translated(self, event: events.Event) -> list[ServerEvent]:
        conversation_id = f"conv_{self._session_id}"
        return [each for sounding in self._sound_out.encoded(event) for each in translate(sounding, conversation_id)]

    def _anew(self, entry: Entry) -> Said:
        """Under a number of its own, as its client knows nothing of the one that it had."""
        text = self._encoder.encode_again(entry.event)
        return Said(self.seq, text, text)

    def _said(self, event: ServerEvent) -> Said:
        text = self._encoder.encode(event)
        return Said(self.seq, text, None if isinstance(event, wire.AudioDelta) else text)

    def _opened(self, config: VoiceConfig, bearer: Bearer | None) -> Said:
        event = wire.SessionCreated(session=self._object(config), resume=self._resume(bearer, self.seq + 1))
        text = self._encoder.encode(event)
        return Said(self.seq, text, None)

    def _updated(self, config: VoiceConfig, bearer: Bearer | None, expires_at: int | UnsetType = UNSET) -> Said:
        """In the journal without its token: who reads it there has a newer one."""
        event = wire.SessionUpdated(session=self._object(config), expires_at=expires_at)
        kept = self._encoder.encode(event)
        resume = UNSET if bearer is None else Resume(bearer.token, self.seq, int(bearer.held_until_s))
        return Said(self.seq, self._encoder.named(msgspec.structs.replace(event, resume=resume), self.seq), kept)

    def _reopened(self, event: events.Reopened, bearer: Bearer | None) -> Said:
        greeting = self._resume(bearer, self.seq, replayed=len(event.untold), lost=None)
        return self._greeting(event.config, greeting, resync(event.items, event.response_id))

    def _resumed(self, event: events.Resumed, bearer: Bearer | None) -> Said:
        greeting = self._resume(bearer, event.after, replayed=len(event.missed), lost=event.sounds_lost)
        return self._greeting(event.config, greeting)

    def _greeting(self, config: VoiceConfig, resume: Resume, known: wire.Resync | UnsetType = UNSET) -> Said:
        """No event of the session's: it has the number of the last one before those that follow, so that who is lost right after
        it misses none of them."""
        event = wire.SessionCreated(session=self._object(config), resume=resume, resync=known)
        return Said(resume.seq, self._encoder.named(event, resume.seq), None)

    def _resume(
        self,
        bearer: Bearer | None,
        seq: int,
        replayed: int | UnsetType = UNSET,
        lost: int | UnsetType | None = UNSET,
    ) -> Resume:
        token, until_s = ("", 0.0) if bearer is None else (bearer.token, bearer.held_until_s)
        restored = UNSET if replayed is UNSET else True
        return Resume(token, seq, int(until_s), restored, replayed, lost)

    def _object(self, config: VoiceConfig) -> Object:
        return shown_session(msgspec.structs.replace(self.shown, config=config), self._session_id)


def _again(entry: Entry) -> Said:
    return Said(entry.seq, entry.event, None)
