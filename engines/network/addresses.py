"""Where a worker listens: `unix:/path` on this host, `tcp://host:port` anywhere."""

import ipaddress
from typing import TypeAlias
from urllib.parse import urlsplit

import msgspec

UNIX = "unix:"
TCP = "tcp://"


class UnixAddress(msgspec.Struct, frozen=True):
    path: str

    def __str__(self) -> str:
        return f"{UNIX}{self.path}"


class TcpAddress(msgspec.Struct, frozen=True):
    """`host` is a name or an address; port 0 takes a free one when it is listened on."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{TCP}[{self.host}]:{self.port}" if ":" in self.host else f"{TCP}{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether nobody outside this machine can reach it."""
        return self.host == "localhost" or ((ip := _ip(self.host)) is not None and ip.is_loopback)

    @property
    def is_wildcard(self) -> bool:
        """It stands for every address of this machine: right for listening, and nowhere to connect to."""
        return (ip := _ip(self.host)) is not None and ip.is_unspecified


Address: TypeAlias = UnixAddress | TcpAddress


def address(text: str) -> Address:
    """Raises ValueError."""
    if text.startswith(UNIX) and text.removeprefix(UNIX).startswith("/"):
        return UnixAddress(text.removeprefix(UNIX))
    if text.startswith(TCP):
        return _tcp(text)
    raise _wrong(text)


def _tcp(text: str) -> TcpAddress:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as wrong:
        raise _wrong(text) from wrong
    if not host or port is None or str(TcpAddress(host, port)) != text.lower():
        raise _wrong(text)
    return TcpAddress(host, port)


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """None: it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _wrong(text: str) -> ValueError:
    return ValueError(f"address: expected unix:/path or tcp://host:port, got {text!r}")
