"""What every handler of the edge may reach, typed: `request.app[CONTEXT]`."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from engines.messages.to_gateway import Report, StageStatus
from engines.requests import Graph
from realtime.catalogue import Catalogue
from realtime.drain import Drain
from realtime.failed_attempts import FailedAttempts
from realtime.media.client import MediaClient
from realtime.metrics import Metrics
from realtime.openai_realtime.known_sessions import KnownSessions
from realtime.picture_links import PictureLinks
from realtime.settings import ServerSettings
from realtime.webrtc.turn import Turn
from sessions.admission.admission import Admission
from sessions.admission.node import Node
from sessions.billing import Billing
from sessions.identity.credentials import Credentials
from sessions.jobs.jobs import Jobs
from sessions.retention.ownership import Ownership
from sessions.store.interface import Store
from sessions.voice.sessions import VoiceSessions
from sessions.voice.settings import VoiceSettings


@dataclass(frozen=True, kw_only=True)
class AppContext:
    """`clock` is monotonic, in seconds. `media` works on files, `call_media` on
    calls: a process each, so that no upload, however it was made, can touch what people are saying."""

    settings: ServerSettings
    catalogue: Catalogue
    graph: Graph
    store: Store
    node: Node
    admission: Admission
    billing: Billing
    jobs: Jobs
    ownership: Ownership
    voice_sessions: VoiceSessions
    voice_settings: VoiceSettings
    media: MediaClient
    call_media: MediaClient
    metrics: Metrics
    stage_statuses: Callable[[], tuple[StageStatus, ...]]
    worker_reports: Callable[[], Awaitable[Mapping[str, Report]]]
    faults: Callable[[], Mapping[str, str]]
    drain: Drain = field(default_factory=Drain)
    known_sessions: KnownSessions
    clock: Callable[[], float] = time.monotonic
    credentials: Credentials
    failed_attempts: FailedAttempts = field(default_factory=FailedAttempts)
    turn: Turn | None = None
    keeps_sessions: bool = False
    """They outlive this process: the store is a shared one."""
    call_prefix: str = "rtc"
    """Of the ids of its calls; behind a front it names the node."""
    picture_links: PictureLinks = field(default_factory=PictureLinks)


CONTEXT = web.AppKey("context", AppContext)
