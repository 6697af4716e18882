"""What the wire knows of a session that the session itself does not, for whoever comes back to it."""

from weakref import WeakValueDictionary

from realtime.openai_realtime.script import Script
from sessions.voice.config import VoiceConfig


class KnownSessions:
    """For as long as the sessions live."""

    def __init__(self) -> None:
        self._scripts: WeakValueDictionary[str, Script] = WeakValueDictionary()

    def begin(self, session_id: str, config: VoiceConfig, state: bytes) -> Script:
        script = self._scripts[session_id] = Script(session_id, config, state)
        return script

    def of(self, session_id: str) -> Script:
        """Of a session that is here."""
        return self._scripts[session_id]
