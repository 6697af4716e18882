"""The edge over a FakeGraph, with real sessions, served on loopback."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import aiohttp
from aiohttp import web

from engines.messages.to_gateway import Report, StageReport, StageState, StageStatus
from fakes.doors import Door
from fakes.graph import FakeGraph
from realtime.app import build_app
from realtime.catalogue import Catalogue
from realtime.context import AppContext
from realtime.conversations import conversations_of
from realtime.listener import listen
from realtime.media.client import MediaClient
from realtime.metrics import Metrics
from realtime.settings import ServerSettings
from realtime.tls import Certificate
from sessions.admission.admission import Admission
from sessions.admission.node import Node, NodeIdentity
from sessions.admission.seats import Seats
from sessions.admission.settings import AdmissionSettings, CalibratedSeats
from sessions.billing import Billing
from sessions.identity.tenants import Tenants, TenantSettings
from sessions.jobs.jobs import Jobs
from sessions.jobs.settings import VideoSettings
from sessions.retention.settings import SessionLimits
from sessions.retention.snapshots import Origin
from sessions.states import State
from sessions.store.interface import Store
from sessions.store.memory import MemoryStore
from sessions.voice.settings import VoiceSettings
from strict_client import StrictClient


def now_us() -> int:
    return time.time_ns() // 1000


CATALOGUE = Catalogue(
    pipeline="antiphon-voice",
    chat=("smollm2", "antiphon-voice"),
    transcription=("whisper",),
    pictures=("painter-1", "antiphon-images"),
    films=("director-1", "antiphon-videos"),
    voices={"joe": "audio", "heart": "narration"},
    speakers={"joe": "piper", "heart": "kokoro"},
)
BILLED_EVERY_S = 0.05
REPORT = StageReport("thinker", 1, 2, 8, 40, 44, 50, "tokens", 123, {}, rows=60, shed=3)


class FakeStages:
    """What the stages say about themselves; a test changes it."""

    def __init__(self) -> None:
        self.thinker = StageStatus("thinker", StageState.READY, 8)
        self.fault = ""

    def statuses(self) -> tuple[StageStatus, ...]:
        return (self.thinker,)

    async def reports(self) -> dict[str, Report]:
        return {"mind": Report((REPORT,), rss_bytes=1_000, fault=self.fault)}

    def faults(self) -> dict[str, str]:
        return {"mind": self.fault} if self.fault else {}


def edge_context(
    graph: FakeGraph,
    *,
    limits: SessionLimits = SessionLimits(),  # noqa: B008 (a frozen value)
    voice_settings: VoiceSettings = VoiceSettings(instructions="Be brief."),  # noqa: B008
    stages: FakeStages | None = None,
    door: Door | None = None,
    api_key: str | None = None,
    admission: AdmissionSettings = AdmissionSettings(),  # noqa: B008
    tenants: Mapping[str, TenantSettings] | None = None,
    calibrated: Mapping[str, CalibratedSeats] | None = None,
    store: Store | None = None,
    name: str = "edge-1",
    host: str = "edge",
    videos: VideoSettings = VideoSettings(directory="/nowhere"),  # noqa: B008
    origin: Origin = Origin(CATALOGUE.pipeline, "1"),  # noqa: B008
    **changes: Any,
) -> AppContext:
    """Needs a running loop. `door`: whom it lets in; else everybody, or who bears `api_key`. Its media clients are not started:
    who needs one passes `media`, or `call_media`."""
    stages = stages or FakeStages()
    store, identity = store or MemoryStore(now_us), NodeIdentity(node=name, host=host)
    costs = Seats(identity, admission, limits.maximum_sessions, calibrated or {}, lambda: {"vad": 64}, {})
    node = Node(store, identity, costs.capacity, costs.reserve)
    node.set(ready=True)
    gate = Admission(node, admission, Tenants(tenants), costs)
    clock = changes.get("clock", time.monotonic)
    billing = Billing(store, BILLED_EVERY_S, time.monotonic)
    talks = conversations_of(node, gate, billing, graph, CATALOGUE, voice_settings, limits, store, origin, clock)
    parts: dict[str, Any] = {
        "settings": ServerSettings(),
        "catalogue": CATALOGUE,
        "graph": graph,
        "store": store,
        "node": node,
        "admission": gate,
        "billing": billing,
        "jobs": Jobs(store, node, gate, billing, graph, videos),
        **talks._asdict(),
        "voice_settings": voice_settings,
        "media": MediaClient(),
        "call_media": MediaClient(),
        "metrics": Metrics(),
        "stage_statuses": stages.statuses,
        "worker_reports": stages.reports,
        "faults": stages.faults,
        "credentials": (door or Door(api_key)).credentials,
    }
    return AppContext(**(parts | changes))


@asynccontextmanager
async def serving(context: AppContext, port: int = 0, certificate: Certificate | None = None) -> AsyncGenerator[str]:
    """The app on loopback, on a free port when none is named, set up as the real server does; gives its URL."""
    runner = web.AppRunner(build_app(context), handler_cancellation=True, shutdown_timeout=1.0, access_log=None)
    await runner.setup()
    try:
        with listen("127.0.0.1", port, certificate) as listener:
            accepting = await listener.accept(runner)
            yield listener.url
            accepting.close()
    finally:
        await runner.cleanup()


class Edge:
    def __init__(self, context: AppContext, graph: FakeGraph, url: str, http: aiohttp.ClientSession) -> None:
        self.context = context
        self.graph = graph
        self.url = url
        self.http = http

    @asynccontextmanager
    async def socket(
        self, path: str = "/v1/realtime", headers: Mapping[str, str] | None = None, protocols: tuple[str, ...] = ()
    ) -> AsyncGenerator[StrictClient]:
        async with self.http.ws_connect(
            self.url + path, max_msg_size=0, compress=0, headers=headers, protocols=protocols
        ) as socket:
            yield StrictClient(socket)

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[StrictClient]:
        """A session whose `session.created` has been read."""
        async with self.socket() as client:
            await client.until("session.created")
            yield client

    async def idle(self) -> None:
        """Until the graph holds nothing and every seat is free."""
        async with asyncio.timeout(10):
            while self.graph.open_requests or self.context.voice_sessions.sessions():  # noqa: ASYNC110 (seats ring no bell)
                await asyncio.sleep(0)

    async def left_alone(self) -> None:
        """Until the graph holds nothing, and every session, if there is one, waits for its client."""
        async with asyncio.timeout(10):
            while self.graph.open_requests or not self.all_detached():  # noqa: ASYNC110
                await asyncio.sleep(0)

    def all_detached(self) -> bool:
        return all(session.state is State.DETACHED for session in self.context.voice_sessions.sessions())


ServeEdge: TypeAlias = Callable[..., Coroutine[None, None, Edge]]
