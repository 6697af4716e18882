"""The worker as a process: logs, signals, garbage collection and the exit status."""

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import signal
import socket
import threading
from typing import cast

import uvloop

from engines import logs
from engines.bridges.whole import with_whole_edges
from engines.connectors.between_hosts import BetweenHosts
from engines.connectors.process import Connectors
from engines.pipeline import PipelineError
from engines.pipelines.registry import pipeline
from engines.worker.listening import between_hosts, listener
from engines.worker.server import Worker
from engines.worker.spec import WorkerSpec

log = logging.getLogger(__name__)

SHUTDOWN_S = 5.0

CANNOT_START = 2
ENGINE_DIED = 70
"""EX_SOFTWARE: the supervisor starts another worker."""


def run(spec: WorkerSpec) -> int:
    """Until SIGTERM or SIGINT (0), or until an engine dies (ENGINE_DIED)."""
    logs.set_up(spec.name, spec.logs)
    try:
        hosts = between_hosts(spec)
        connectors = Connectors(spec.ring_mb << 20, hosts.by_name)
        worker = Worker(spec, with_whole_edges(pipeline(spec.pipeline), spec.full_edges), connectors)
        sock = listener(spec)
    except (PipelineError, OSError, ValueError) as error:
        log.error("worker %s cannot start: %s", spec.name, error)
        return CANNOT_START
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(worker, sock, hosts))
    except BaseExceptionGroup as error:
        log.critical("worker %s ends: %s", spec.name, "; ".join(_reasons(error)), exc_info=error)
        return ENGINE_DIED
    finally:
        connectors.close()
        _shut_down(worker)
    return 0


async def _serve(worker: Worker, sock: socket.socket, hosts: BetweenHosts) -> None:
    serving = asyncio.create_task(worker.run(sock, hosts))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    freezing = asyncio.create_task(_freeze_when_loaded(worker))
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    freezing.cancel()


async def _freeze_when_loaded(worker: Worker) -> None:
    """A full collection over a loaded model takes hundreds of milliseconds; frozen objects are never visited again."""
    await worker.loaded()
    gc.collect()
    gc.freeze()


def _reasons(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        parts = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return [reason for part in parts for reason in _reasons(part)]
    return [f"{type(error).__name__}: {error}"]


def _shut_down(worker: Worker) -> None:
    """Bounded: a model that hangs must not keep the process alive, nor may processes that a model started outlive it."""
    releasing = threading.Thread(target=worker.shutdown, name="shutdown", daemon=True)
    releasing.start()
    releasing.join(SHUTDOWN_S)
    for child in multiprocessing.active_children():
        child.kill()
