"""Connectors move payloads between processes and know nothing of what they carry.

A producer puts, and passes the small `Content` on in a control message; whoever reads that message gets. What was put stays until
the producer cleans it up, and as long after that as somebody still reads it.
"""

from typing import Protocol

from engines.connectors.contents import Content, Key
from engines.payloads import Payload


class PayloadLost(Exception):
    """What this content speaks of is not there any more, or is not what it should be."""

    def __init__(self, key: Key, reason: str) -> None:
        super().__init__(f"payload {key.seq} of {key.scope}: {reason}")
        self.key = key


class PayloadTooLarge(ValueError):
    """Nothing was put."""

    def __init__(self, nbytes: int, limit: int) -> None:
        super().__init__(f"a payload of {nbytes} bytes, at most {limit} can be carried")
        self.nbytes = nbytes
        self.limit = limit


class Connector(Protocol):
    def put(self, key: Key, payload: Payload) -> Content:
        """Make `payload` readable by others, at once: where there is no room it travels inline. Raises PayloadTooLarge."""
        ...

    async def get(self, content: Content) -> Payload:
        """Waits only for what must come from elsewhere. Raises PayloadLost."""
        ...

    def cleanup(self, scope: str, before: int | None = None) -> int:
        """Forget the payloads of `scope` whose seq is less than `before` (None: all); returns how many there were."""
        ...

    def holds(self, scope: str) -> int:
        """How many payloads of `scope` are not yet forgotten."""
        ...

    def health(self) -> str:
        """Empty while the connector works, else one sentence that says what is wrong."""
        ...

    def close(self) -> None:
        """Forget everything; nothing is put or got any more. Idempotent."""
        ...
