"""A worker: its stages, and the gateways that are connected to it."""

import asyncio
import itertools
import logging
import socket

from engines.connectors.between_hosts import BetweenHosts
from engines.connectors.process import Connectors
from engines.messages.connection import Connection
from engines.messages.to_gateway import StageStatus, StatusChanged
from engines.messages.to_worker import ToWorker
from engines.pipeline import Pipeline
from engines.site import NOWHERE, Site, this_host
from engines.worker.listening import serve
from engines.worker.loading import EngineFactory, load_engine
from engines.worker.namespace import Namespace, PeerLeft
from engines.worker.spec import WorkerSpec
from engines.worker.stage_host import StageHost

log = logging.getLogger(__name__)


class Worker:
    def __init__(self, spec: WorkerSpec, pipeline: Pipeline, connectors: Connectors, load: EngineFactory = load_engine) -> None:
        """Raises PipelineError for a stage that the pipeline does not have."""
        self._name = spec.name
        self._connectors = connectors
        self._hosts = {stage.stage: StageHost(pipeline, stage, connectors, load, self._announce) for stage in spec.stages}
        self._namespaces: set[Namespace] = set()
        self._serials = itertools.count()
        self._site = NOWHERE
        self._is_shared = spec.is_shared or not spec.is_supervised

    async def run(self, listener: socket.socket, hosts: BetweenHosts | None = None) -> None:
        """Load the stages side by side and serve until cancelled; raises when an engine can serve no more. `listener` on TCP
        needs `hosts`."""
        self._site = Site(this_host(), hosts.fetched_by if hosts else "")
        async with asyncio.TaskGroup() as group:
            for host in self._hosts.values():
                group.create_task(host.run())
            await serve(listener, lambda: self._accept(group), hosts.tcp if hosts else None)

    async def loaded(self) -> None:
        """Returns when no stage is loading any more."""
        for host in self._hosts.values():
            await host.loaded.wait()

    def shutdown(self) -> None:
        """Release the models. May take seconds."""
        for host in self._hosts.values():
            if host.engine is not None:
                host.engine.shutdown()

    def _accept(self, group: asyncio.TaskGroup) -> tuple[Connection[ToWorker], asyncio.Task[None]]:
        place = (self._name, next(self._serials), self._hosts, self._connectors, self._site)
        namespace = Namespace(*place, is_shared=self._is_shared)
        return namespace.connection, group.create_task(self._serve(namespace))

    async def _serve(self, namespace: Namespace) -> None:
        """The transport's funnel: whatever goes wrong with a connection ends that connection and nothing else."""
        self._namespaces.add(namespace)
        try:
            await namespace.serve()
        except* PeerLeft:
            log.debug("gateway %s left", namespace.namespace)
        except* OSError as lost:
            log.warning("connection %s dropped: %s", namespace.namespace, "; ".join(str(error) for error in lost.exceptions))
        except* Exception as error:
            log.error("connection %s dropped", namespace.namespace, exc_info=error)
        finally:
            self._namespaces.discard(namespace)

    def _announce(self, status: StageStatus) -> None:
        log.debug("stage %s: %s%s", status.stage, status.state, f", {status.note}" if status.note else "")
        for namespace in self._namespaces:
            namespace.send(StatusChanged(status))
