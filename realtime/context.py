"""What every handler of the edge may reach, typed: `request.app[CONTEXT]`."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec
from aiohttp import web

from engines.messages.to_gateway import StageReport, StageStatus
from engines.requests import Graph
from realtime.drain import Drain
from realtime.errors import UnknownVoice
from realtime.media.client import MediaClient
from realtime.metrics import Metrics
from realtime.settings import ServerSettings
from sessions.manager import SessionManager
from sessions.settings import VoiceSettings
from sessions.voice_sessions import VoiceSessions

STOCK_VOICES = frozenset(
    ("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse")
)


class Catalogue(msgspec.Struct, frozen=True):
    """What this deployment answers to by name. `models` are the names for `model` fields, the pipeline's own first;
    `voices` maps a voice to the output of the graph that speaks with it, the default one first."""

    models: tuple[str, ...]
    voices: Mapping[str, str]

    @property
    def default_model(self) -> str:
        return self.models[0]

    @property
    def default_voice(self) -> str:
        """Empty when nothing here speaks."""
        return next(iter(self.voices), "")

    def voice(self, field: str, name: str) -> str:
        """The voice meant by `name`. Stock clients name OpenAI's own voices unasked, so those stand for the default one.

        Raises UnknownVoice, blaming `field`.
        """
        if name in self.voices:
            return name
        if name in STOCK_VOICES and self.voices:
            return self.default_voice
        raise UnknownVoice(field, name, tuple(self.voices))


@dataclass(frozen=True, kw_only=True)
class AppContext:
    """`clock` is monotonic, in seconds. `api_key` None: open to this machine alone."""

    settings: ServerSettings
    catalogue: Catalogue
    graph: Graph
    seats: SessionManager
    voice_sessions: VoiceSessions
    voice_settings: VoiceSettings
    media: MediaClient
    metrics: Metrics
    stage_statuses: Callable[[], tuple[StageStatus, ...]]
    stage_reports: Callable[[], Awaitable[tuple[StageReport, ...]]]
    drain: Drain = field(default_factory=Drain)
    clock: Callable[[], float] = time.monotonic
    api_key: str | None = None


CONTEXT = web.AppKey("context", AppContext)
