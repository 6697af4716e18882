"""What the wire knows of a session that the session itself does not, for whoever comes back to it."""

from weakref import WeakKeyDictionary

from realtime.openai_realtime.session_config import WireSession
from sessions.voice import VoiceSession


class KnownSessions:
    """For as long as the session lives."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[VoiceSession, WireSession] = WeakKeyDictionary()

    def keep(self, session: VoiceSession, shown: WireSession) -> None:
        self._known[session] = shown

    def of(self, session: VoiceSession) -> WireSession:
        """As it was kept last; what a session began with, when its first transport did not live to say so."""
        return self._known.get(session, WireSession(session.config))
