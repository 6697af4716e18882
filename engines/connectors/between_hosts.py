"""The connectors with which this process reaches other hosts, as the deployment chose."""

from collections.abc import Mapping

from engines.connectors import Connector
from engines.connectors.mooncake import MooncakeConnector
from engines.connectors.mooncake_engine import MooncakeEngine, MooncakeMissing
from engines.connectors.tcp import TcpConnector
from engines.network.addresses import TcpAddress
from engines.site import Carrier


class BetweenHosts:
    """`by_name` are for Connectors. `fetched_by` is with which of them others fetch from this process; empty: they cannot."""

    def __init__(self, carrier: Carrier, public: TcpAddress | None, secret: bytes, capacity_bytes: int) -> None:
        """`public` is where others reach this process; None: it only fetches. `capacity_bytes` is what Mooncake takes for what is
        put. Raises OSError, and ValueError where Mooncake cannot be loaded."""
        self.tcp = TcpConnector(public, secret)
        self.by_name: Mapping[str, Connector] = {Carrier.TCP: self.tcp}
        if carrier is Carrier.MOONCAKE:
            self.by_name = {Carrier.TCP: self.tcp, Carrier.MOONCAKE: _mooncake(public, capacity_bytes)}
        self.fetched_by = carrier if public and not public.is_loopback else ""


def _mooncake(public: TcpAddress | None, capacity_bytes: int) -> MooncakeConnector:
    try:
        engine = MooncakeEngine(public.host if public else "127.0.0.1")
    except MooncakeMissing as missing:
        raise ValueError(f"between_hosts: expected tcp, got mooncake, which cannot be loaded: {missing}") from missing
    return MooncakeConnector(engine, capacity_bytes if public else 0)
