"""The settings of a gateway that uses the workers which another process of its host has started."""

from collections.abc import Mapping

import msgspec

from engines.deployment import GraphSettings
from engines.launching.worker_settings import WorkerSettings, process_names
from engines.network.addresses import UnixAddress


def sharing(settings: GraphSettings, sockets: Mapping[str, str]) -> GraphSettings:
    """`sockets` are the paths of those started, by process: of replicas each becomes a worker of its own."""
    workers: dict[str, WorkerSettings] = {}
    for name, worker in settings.workers.items():
        if worker.address:
            workers[name] = worker
            continue
        for process in process_names(name, worker):
            place = str(UnixAddress(sockets[process]))
            workers[process] = msgspec.structs.replace(worker, replicas=1, address=place)
    return msgspec.structs.replace(settings, workers=workers)
