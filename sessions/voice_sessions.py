"""Opens voice sessions: a seat, an attachment and a running session, given back together."""

import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from engines import logs
from engines.requests import Graph
from sessions.manager import Attachment, Kind, SessionManager
from sessions.playout import Playout
from sessions.settings import VoiceSettings
from sessions.voice import VoiceSession
from sessions.voice_config import VoiceConfig


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:20]}"


class VoiceSessions:
    """`voices` maps a voice's name to the graph's output that speaks with it."""

    def __init__(
        self,
        graph: Graph,
        manager: SessionManager,
        settings: VoiceSettings,
        voices: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
        ids: Callable[[str], str] = new_id,
    ) -> None:
        self._graph = graph
        self._manager = manager
        self._settings = settings
        self._voices = voices
        self._clock = clock
        self._ids = ids

    @asynccontextmanager
    async def open(
        self,
        config: VoiceConfig,
        playout: Playout | None = None,
    ) -> AsyncGenerator[tuple[VoiceSession, Attachment], None]:
        """A running session and its first attachment. Raises SeatRefused. What the block and the session's tasks log is about
        this session. The seat is free when the block has ended, however it ends."""
        session_id = self._ids("sess")
        with logs.about(session=session_id):
            self._manager.open(session_id, Kind.VOICE)
            try:
                attachment = self._manager.attach(session_id)
                async with VoiceSession(
                    self._graph,
                    config,
                    self._settings,
                    self._voices,
                    session_id,
                    attachment.fence.number,
                    self._clock,
                    self._ids,
                    playout,
                ) as session:
                    yield session, attachment
            finally:
                self._manager.close(session_id)
