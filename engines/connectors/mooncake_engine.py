"""Mooncake's transfer engine, typed: its wheel has no stubs.

address       "host:port", under which the other side reads our registered memory
read          copies from there; releases the GIL while it waits
"""

from importlib import import_module
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

PEER_TO_PEER = "P2PHANDSHAKE"
"""No metadata server: the engines ask each other."""


class MooncakeMissing(ImportError):
    """The extra is not installed, or a library that it needs is not."""


class TransferFailed(ConnectionError):
    """Nothing that could be used has come."""


class _TransferEngine(Protocol):
    """Numbers are addresses in memory and counts of bytes; a result other than 0 is a failure."""

    def initialize(self, host: str, metadata: str, protocol: str, device: str, /) -> int: ...
    def get_rpc_port(self) -> int: ...
    def register_memory(self, address: int, nbytes: int) -> int: ...
    def unregister_memory(self, address: int) -> int: ...
    def transfer_sync_read(self, host: str, to: int, at: int, nbytes: int) -> int: ...


class MooncakeEngine:
    def __init__(self, host: str) -> None:
        """`host` is how others reach this machine; it listens on all interfaces. Raises MooncakeMissing and OSError."""
        try:
            module = import_module("mooncake.engine")
        except ImportError as missing:
            raise MooncakeMissing(f"{missing}; pip install antiphon[mooncake], and the Debian package libibverbs1") from missing
        self._engine = cast("_TransferEngine", module.TransferEngine())
        if self._engine.initialize(host, PEER_TO_PEER, "tcp", ""):
            raise OSError(f"mooncake cannot listen on {host}")
        self.address = f"{host}:{self._engine.get_rpc_port()}"

    def register(self, memory: NDArray[np.uint8]) -> None:
        """Let everybody read it who reaches this machine. Raises OSError."""
        if self._engine.register_memory(memory.ctypes.data, memory.nbytes):
            raise OSError(f"mooncake cannot register {memory.nbytes} bytes")

    def unregister(self, memory: NDArray[np.uint8]) -> None:
        self._engine.unregister_memory(memory.ctypes.data)

    def read(self, address: str, at: int, to: NDArray[np.uint8]) -> None:
        """Blocks. Raises TransferFailed."""
        if self._engine.transfer_sync_read(address, to.ctypes.data, at, to.nbytes):
            raise TransferFailed(f"{address} cannot be read, or has gone")
