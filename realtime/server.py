"""A running gateway: its parts, its start and its end."""

import asyncio
import contextlib
import gc
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import uvloop
from aiohttp import hdrs, web

from engines.deployment import GraphSettings, with_weights
from engines.launching.supervision import Backoff
from engines.logs import LogStyle
from engines.model_hash import model_hash
from engines.phonemes import find_espeak
from engines.runtime import Runtime
from realtime.admitting import admission_of
from realtime.app import build_app
from realtime.catalogue import catalogue
from realtime.context import AppContext
from realtime.conversations import conversations_of
from realtime.departed import give_up
from realtime.deployment import Deployment
from realtime.health import loading
from realtime.keys import check_keys, credentials_of, say_if_open
from realtime.listener import Listener, listen
from realtime.loop_lag import watch_lag
from realtime.media.client import MediaClient, media_command
from realtime.metrics import Metrics
from realtime.picture_links import PictureLinks
from realtime.place import Place, host_name
from realtime.priority import CLOCK, ask_for_priority
from realtime.progress import STOPPING, Progress, stopping
from realtime.settings import ServerSettings
from realtime.signals import on_signals, renew_on_hang_up
from realtime.tls import Certificate, own_certificate
from realtime.together import beside, together
from realtime.webrtc.turn import configured_turn
from sessions.admission.seats import granted_slots
from sessions.billing import Billing
from sessions.jobs.jobs import Jobs
from sessions.retention.snapshots import Origin
from sessions.store.address import open_store
from sessions.store.interface import Store
from sessions.store.records import Order
from sessions.store.settings import RENEWALS_IN_A_LEASE

log = logging.getLogger(__name__)

FORCED_EXIT_CODE = 130
SWITCHING_PROTOCOLS = 101
LAST_WORDS_S = 2.0
"""What a session takes to be written down, and its client to be told."""
PHONEME_MODELS = {"piper_talker", "kokoro"}
"""These speak by way of the program espeak-ng."""


def run(deployment: Deployment, api_key: str | None, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. Before anything runs, raises ExposureRefused, TurnSecretMissing, TlsError, CannotListen,
    WeightsError, EspeakMissing."""
    settings = deployment.server
    check_keys(deployment, api_key)
    configured_turn(settings.webrtc.turn)
    certificate = own_certificate(settings)
    with listen(settings.host, settings.port, certificate) as listener:
        graph = with_weights(deployment.graph)
        check_programs(graph)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            be_first(deployment.server)
            runner.run(_serve(deployment, graph, api_key, say, listener, certificate))


def be_first(settings: ServerSettings) -> None:
    if settings.realtime_priority and not ask_for_priority(CLOCK):
        log.info("the system gives no real-time priority: while its cores are busy, calls may lose slots")


def check_programs(graph: GraphSettings) -> None:
    """Raises EspeakMissing."""
    if PHONEME_MODELS & {stage.model for stage in graph.stages.values()}:
        find_espeak()


async def _serve(
    deployment: Deployment,
    graph: GraphSettings,
    api_key: str | None,
    say: Callable[[str], None],
    listener: Listener,
    certificate: Certificate | None,
) -> None:
    async with open_store(deployment.store.url, deployment.store.settle_s) as store:
        place = Place(host=host_name(listener.port))
        await give_up(store, place.node)  # a life that ended before
        gateway = Gateway(deployment, graph, api_key, say, store, place=place)
        on_signals(gateway.context.drain.stop, end_at_once)
        if certificate is not None:
            renew_on_hang_up(certificate, gateway.context.drain.stop)
        await gateway.serve(listener)


def end_at_once() -> None:
    """Workers end by themselves, as their stdin closes."""
    os._exit(FORCED_EXIT_CODE)


class Closes(Protocol):
    def close(self) -> None: ...


class Accepts(Protocol):
    """Where connections come from: a socket of our own, or a front."""

    @property
    def url(self) -> str: ...

    async def accept(self, runner: web.AppRunner) -> Closes:
        """Connections go to `runner`, which is set up already, until the result is closed."""
        ...


class Gateway:
    """`on_change` is called when it may have become ready, or no longer is. `worker_backoff`: of starting its workers, and of
    connecting to those that others run."""

    def __init__(
        self,
        deployment: Deployment,
        graph: GraphSettings,
        api_key: str | None,
        say: Callable[[str], None],
        store: Store,
        *,
        place: Place,
        worker_backoff: Backoff = Backoff(),  # noqa: B008 (a frozen value)
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._say = say
        self._place = place
        self._on_change = on_change
        self._progress = Progress(say, time.monotonic, on_ready=settle_memory)
        self._metrics = Metrics()
        self._runtime = Runtime(graph, logs=deployment.server.log_style, on_status=self._status_changed, backoff=worker_backoff)
        self._media = self._media_client("media", deployment.server.log_style)
        self._call_media = self._media_client("calls", deployment.server.log_style, first=deployment.server.realtime_priority)
        self._starts: dict[str, int] = {}
        self._has_been_open = False
        names = catalogue(graph)
        node, admission = admission_of(deployment, place, store, self._granted)
        billing = Billing(store, deployment.store.lease_s / RENEWALS_IN_A_LEASE, time.monotonic)
        made_by = Origin(names.pipeline, model_hash(graph))
        talks = conversations_of(
            node, admission, billing, self._runtime, names, deployment.voice, deployment.limits, store, made_by
        )
        self.context = AppContext(
            settings=deployment.server,
            catalogue=names,
            graph=self._runtime,
            store=store,
            node=node,
            admission=admission,
            billing=billing,
            jobs=Jobs(store, node, admission, billing, self._runtime, deployment.videos, ended=self._job_ended),
            voice_settings=deployment.voice,
            media=self._media,
            call_media=self._call_media,
            metrics=self._metrics,
            stage_statuses=self._runtime.stage_statuses,
            worker_reports=self._runtime.reports,
            faults=self._runtime.faults,
            credentials=credentials_of(deployment, api_key, store if deployment.store.is_shared else None),
            turn=configured_turn(deployment.server.webrtc.turn),
            keeps_sessions=deployment.store.is_shared,
            call_prefix=place.call_prefix,
            picture_links=PictureLinks(place.picture_prefix),
            **talks._asdict(),
        )
        node.on_order(self._heed)

    @property
    def is_open(self) -> bool:
        """It takes new sessions."""
        return not self.context.drain.begun and not loading(self._runtime.stage_statuses())

    @property
    def sessions(self) -> int:
        return len(self.context.voice_sessions.sessions())

    async def serve(self, listener: Accepts) -> None:
        """Until it is to stop; returns when nothing is left."""
        app = build_app(self.context)
        if self._place.number is not None:
            app.on_response_prepare.append(_end_with_this)
        runner = web.AppRunner(
            app,
            handler_cancellation=True,  # a client that disconnects aborts its work
            shutdown_timeout=self.context.settings.shutdown_s,
            access_log=None,  # its lines would show query strings, and tokens travel there
        )
        watching = watch_lag(self._metrics.loop_lag, self._is_busy)
        async with self._media, self._call_media, self._runtime.running(), beside(watching):
            await runner.setup()
            accepting = await listener.accept(runner)
            self._say(f"listening on {listener.url}")
            await say_if_open(self.context.credentials, self._say)
            self._status_changed()
            await self.context.drain.until_stopping()
            self.context.node.set(draining=True)
            self._say(stopping(self.context.settings.drain_s) if self._is_busy() else STOPPING)
            await self._until_nobody_is_served()
            accepting.close()
            await runner.cleanup()

    async def _until_nobody_is_served(self) -> None:
        """Sessions go to other nodes, or rest in the store; requests come to their end. Or they have had long enough."""
        limit_s = self.context.settings.drain_s
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s + LAST_WORDS_S):
                await together(
                    self.context.voice_sessions.drain(limit_s),
                    self.context.jobs.drain(limit_s),
                    self.context.drain.until_idle(),
                )

    def _heed(self, order: Order) -> None:
        """An operator's word about the whole node."""
        match order:
            case Order("drain", ""):
                self.context.drain.begin()
            case Order("undrain", ""):
                self.context.drain.undo()
            case _:
                return
        self.context.node.set(draining=self.context.drain.begun)
        self._on_change()

    def _granted(self) -> Mapping[str, int]:
        return granted_slots(status for worker in self._runtime.worker_statuses() for status in worker.stages)

    def _is_busy(self) -> bool:
        return bool(self.context.voice_sessions.sessions()) or any(self._runtime.active().values())

    def _job_ended(self, outcome: str) -> None:
        self._metrics.answered("video", outcome, None)

    def _media_client(self, name: str, logs: LogStyle, *, first: bool = False) -> MediaClient:
        return MediaClient(media_command(name, logs, first=first), on_restart=lambda: self._metrics.worker_restarted(name))

    def _status_changed(self) -> None:
        if self.context.drain.begun:
            return
        self._on_change()
        self._has_been_open = self._has_been_open or self.is_open
        # A worker that is started again is no reason to let those wait whom the others serve: the graph tells whom it cannot.
        self.context.node.set(ready=self._has_been_open)
        self._progress.update(self._runtime.stage_statuses())
        for worker in self._runtime.worker_statuses():
            for _ in range(worker.starts - self._starts.get(worker.worker, 1)):
                self._metrics.worker_restarted(worker.worker)
            self._starts[worker.worker] = max(1, worker.starts)


async def _end_with_this(_request: web.Request, response: web.StreamResponse) -> None:
    """Signal handler: the next request on this connection may be for another node, and only the front knows for which."""
    if response.status != SWITCHING_PROTOCOLS:
        response.force_close()
        response.headers[hdrs.CONNECTION] = "close"  # it has been decided before


def settle_memory() -> None:
    """What start-up has made stays for good: no full collection walks it again."""
    gc.collect()
    gc.freeze()
