"""A running gateway: its parts, its start and its end."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Coroutine

import uvloop
from aiohttp import web

from engines.deployment import GraphSettings, with_weights
from engines.logs import LogStyle
from engines.phonemes import find_espeak
from engines.runtime import Runtime
from realtime.app import build_app
from realtime.catalogue import catalogue
from realtime.context import AppContext
from realtime.deployment import Deployment
from realtime.keys import check_keys, credentials_of
from realtime.listener import Listener, listen
from realtime.loop_lag import watch_lag
from realtime.media.client import MediaClient, media_command
from realtime.metrics import Metrics
from realtime.priority import CLOCK, ask_for_priority
from realtime.progress import Progress
from realtime.settings import ServerSettings
from realtime.tls import Certificate, TlsError, own_certificate
from realtime.webrtc.turn import configured_turn
from sessions.manager import SessionManager
from sessions.settings import SessionLimits
from sessions.voice_sessions import VoiceSessions

log = logging.getLogger(__name__)

FORCED_EXIT_CODE = 130
STDIN = 0
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
        _check_programs(graph)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            _be_first(deployment.server)
            runner.run(_serve(lambda: Gateway(deployment, graph, api_key, say), listener, certificate))


def _be_first(settings: ServerSettings) -> None:
    if settings.realtime_priority and not ask_for_priority(CLOCK):
        log.info("the system gives no real-time priority: while its cores are busy, calls may lose slots")


def _check_programs(graph: GraphSettings) -> None:
    """Raises EspeakMissing."""
    if PHONEME_MODELS & {stage.model for stage in graph.stages.values()}:
        find_espeak()


def seats(limits: SessionLimits) -> SessionManager:
    """A session manager of the running loop."""
    return SessionManager(
        limits,
        incarnation=now_us(),
        now_us=now_us,
        call_later=asyncio.get_running_loop().call_later,
    )


def now_us() -> int:
    return time.time_ns() // 1000


async def _serve(make: "Callable[[], Gateway]", listener: Listener, certificate: Certificate | None) -> None:
    gateway = make()
    _on_signals(gateway.context.drain.begin)
    if certificate is not None:
        _renew_on_hang_up(certificate, gateway.context.drain.begin)
    await gateway.serve(listener)


class Gateway:
    def __init__(self, deployment: Deployment, graph: GraphSettings, api_key: str | None, say: Callable[[str], None]) -> None:
        self._say = say
        self._progress = Progress(say, time.monotonic, on_ready=_settle_memory)
        self._metrics = Metrics()
        self._runtime = Runtime(graph, logs=deployment.server.log_style, on_status=self._status_changed)
        self._media = self._media_client("media", deployment.server.log_style)
        self._call_media = self._media_client("calls", deployment.server.log_style, first=deployment.server.realtime_priority)
        self._starts: dict[str, int] = {}
        names, manager = catalogue(graph), seats(deployment.limits)
        self.context = AppContext(
            settings=deployment.server,
            catalogue=names,
            graph=self._runtime,
            seats=manager,
            voice_sessions=VoiceSessions(self._runtime, manager, deployment.voice, names.voices),
            voice_settings=deployment.voice,
            media=self._media,
            call_media=self._call_media,
            metrics=self._metrics,
            stage_statuses=self._runtime.stage_statuses,
            worker_reports=self._runtime.reports,
            faults=self._runtime.faults,
            credentials=credentials_of(deployment, api_key, None),
            turn=configured_turn(deployment.server.webrtc.turn),
        )

    async def serve(self, listener: Listener) -> None:
        """Until the drain begins; returns when nothing is left."""
        runner = web.AppRunner(
            build_app(self.context),
            handler_cancellation=True,  # a client that disconnects aborts its work
            shutdown_timeout=self.context.settings.shutdown_s,
            access_log=None,  # its lines would show query strings, and tokens travel there
        )
        watching = watch_lag(self._metrics.loop_lag, self._is_busy)
        async with self._media, self._call_media, self._runtime.running(), _beside(watching):
            await runner.setup()
            accepting = await listener.accept(runner)
            self._say(f"listening on {listener.url}")
            self._status_changed()
            await self.context.drain.wait()
            self._say("stopping")
            accepting.close()
            await runner.cleanup()

    def _is_busy(self) -> bool:
        return bool(self.context.seats.sessions()) or any(self._runtime.active().values())

    def _media_client(self, name: str, logs: LogStyle, *, first: bool = False) -> MediaClient:
        return MediaClient(media_command(name, logs, first=first), on_restart=lambda: self._metrics.worker_restarted(name))

    def _status_changed(self) -> None:
        if self.context.drain.begun:
            return
        self._progress.update(self._runtime.stage_statuses())
        for worker in self._runtime.worker_statuses():
            for _ in range(worker.starts - self._starts.get(worker.worker, 1)):
                self._metrics.worker_restarted(worker.worker)
            self._starts[worker.worker] = max(1, worker.starts)


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """`work` goes on while the block runs; when it fails, so does the block."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()


def _on_signals(stop: Callable[[], None]) -> None:
    """The first signal asks to stop. A second SIGINT forces; workers then end by themselves, as their stdin closes."""
    asked = False

    def interrupt() -> None:
        nonlocal asked
        if asked:
            os._exit(FORCED_EXIT_CODE)
        asked = True
        stop()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, stop)


def _renew_on_hang_up(certificate: Certificate, stop: Callable[[], None]) -> None:
    """SIGHUP asks for the renewed certificate, unless it says that the terminal this runs in is gone."""
    in_terminal = os.isatty(STDIN)

    def renew() -> None:
        if in_terminal and not os.isatty(STDIN):
            return stop()
        try:
            certificate.renew()
            log.info("the certificate has been read again")
        except TlsError as wrong:
            log.error("the certificate stays as it was: %s", wrong)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, renew)


def _settle_memory() -> None:
    """What start-up has made stays for good: no full collection walks it again."""
    gc.collect()
    gc.freeze()
