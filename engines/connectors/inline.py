"""The payload rides in the control message: right for small payloads."""

from engines.connectors import PayloadLost, PayloadTooLarge
from engines.connectors.contents import Content, Inline, Key
from engines.payloads import Payload

INLINE_LIMIT_BYTES = 31 << 20
"""Below a frame of the control connection, with room for what else is in it: five minutes of 48 kHz PCM16."""


class InlineConnector:
    def put(self, key: Key, payload: Payload) -> Content:
        if payload.nbytes > INLINE_LIMIT_BYTES:
            raise PayloadTooLarge(payload.nbytes, INLINE_LIMIT_BYTES)
        return Inline(payload)

    async def get(self, content: Content) -> Payload:
        return self.read(content)

    def read(self, content: Content) -> Payload:
        if not isinstance(content, Inline):
            raise PayloadLost(content.outline.key, "this process reads inline payloads only")
        return content.payload

    def cleanup(self, scope: str, before: int | None = None) -> int:
        return 0

    def holds(self, scope: str) -> int:
        return 0

    def health(self) -> str:
        return ""

    def close(self) -> None: ...
