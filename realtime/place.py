"""Who this gateway is among others that share a store."""

import re
import socket

import msgspec

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
LONGEST_NAME = 40


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """`host` stands for all gateways that share the same workers. `number` counts those behind a front, from 1; None: there is no
    front."""

    host: str
    number: int | None = None

    @property
    def node(self) -> str:
        """The same from one start to the next, and nobody else's."""
        return f"{self.host}-{self.number or 1}"

    @property
    def call_prefix(self) -> str:
        """Of the ids of its calls: by them the front finds the node."""
        return self._prefix("rtc")

    @property
    def picture_prefix(self) -> str:
        """Of the names of pictures that it keeps: likewise."""
        return self._prefix("pic")

    def _prefix(self, kind: str) -> str:
        return kind if self.number is None else f"{kind}_{self.number}"


def host_name(port: int) -> str:
    """Of the server that listens on `port` of this machine: two of them have workers of their own."""
    return f"{_NO_NAME.sub('-', socket.gethostname())[:LONGEST_NAME]}-{port}"
