"""One worker of a deployment that is run by itself, for gateways on this host or others."""

from pathlib import Path

import msgspec

from engines.configuration import WrongValue
from engines.deployment import GraphSettings, with_weights
from engines.launching.machine import Machine
from engines.launching.worker_settings import check_fits, with_device
from engines.launching.worker_specs import worker_specs
from engines.logs import LogStyle
from engines.network.addresses import TcpAddress, UnixAddress, address
from engines.worker.spec import WorkerSpec


def standalone_spec(file: Path, settings: GraphSettings, name: str, listen: str, logs: LogStyle, machine: Machine) -> WorkerSpec:
    """`listen` is where it listens, when that is not its `address`. `machine` is the one that it must fit on.

    Raises ConfigurationError and engines.weights.WeightsError."""
    if name not in settings.workers:
        raise WrongValue(file, "workers", f"one of {', '.join(settings.workers)}", f"{name!r}")
    chosen = settings.workers[name]
    place, public = _places(file, name, listen, chosen.address)
    if isinstance(place, TcpAddress) and not (settings.secret_file or place.is_loopback):
        raise WrongValue(file, "secret_file", f"a file with a secret, as others can reach {place}", "none")
    own = with_device(msgspec.structs.replace(chosen, address="", replicas=1), machine)
    check_fits(file, {name: own}, machine)
    stages = {stage: settings.stages[stage] for stage in own.stages}
    spec = worker_specs(with_weights(msgspec.structs.replace(settings, workers={name: own}, stages=stages, voices={})), logs)[0]
    if isinstance(place, UnixAddress):
        return msgspec.structs.replace(spec, socket=place.path, is_supervised=False)
    return msgspec.structs.replace(spec, listen=str(place), public=public, is_supervised=False)


def _places(file: Path, name: str, listen: str, public: str) -> tuple[UnixAddress | TcpAddress, str]:
    """Where it listens, and how others reach that."""
    key = f"workers.{name}.address"
    if not (listen or public):
        raise WrongValue(file, key, "the address where gateways find it", "none")
    try:
        place = address(listen or public)
    except ValueError as wrong:
        raise WrongValue(Path("command line"), "--listen", "unix:/path or tcp://host:port", repr(listen)) from wrong
    if isinstance(place, TcpAddress) and place.is_wildcard and not public.startswith("tcp:"):
        raise WrongValue(file, key, f"the address under which others reach {place}", public or "none")
    return place, public or listen
