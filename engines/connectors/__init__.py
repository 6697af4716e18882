"""Connectors move payloads between processes and know nothing of what they carry."""

from typing import Protocol

from engines.connectors.contents import Content
from engines.payloads import Payload


class Connector(Protocol):
    def put(self, key: str, payload: Payload) -> Content:
        """Make `payload` readable by the other side; `key` is namespaced by server instance, request and fence."""
        ...

    def get(self, content: Content) -> Payload: ...

    def cleanup(self, key_prefix: str) -> int:
        """Forget every key of one request; returns how many there were."""
        ...

    def health(self) -> str:
        """Empty while the connector works, else one sentence that says what is wrong."""
        ...
