"""What one stage of a request says: its chunks, the credit for them, and the payloads that its readers have not taken yet."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from engines.chunks import Chunk, ChunkTiming
from engines.connectors import Connector
from engines.connectors.contents import Inline, Key
from engines.messages.to_worker import Submit
from engines.payloads import Payload


class Product(NamedTuple):
    payload: Payload
    pts: float
    final: bool
    timing: ChunkTiming


class Voice:
    """Credit is in chunks and in bytes of their arrays; a Grant gives both back, for the oldest chunks first."""

    def __init__(self, submit: Submit, emits: str, scope: str, connector: Connector, send: Callable[[Chunk], None]) -> None:
        self.emitted = 0
        self._submit = submit
        self._emits = emits
        self._scope = scope
        self._connector = connector
        self._send = send
        self._credit = submit.window
        self._out_bytes: deque[int] = deque()
        """Of each chunk that is emitted and not granted."""
        self._bytes = 0
        self._granted = 0
        self._placed = 0
        """Chunks up to the last one whose payload lies here until it is granted."""
        self._unsent: deque[Product] = deque()
        """What one step made beyond the credit: bounded, because no step is run without credit."""

    @property
    def may_emit(self) -> bool:
        return self._credit > 0 and self._bytes < self._submit.window_bytes

    @property
    def holds_payloads(self) -> bool:
        return self._granted < self._placed

    def add(self, product: Product) -> None:
        self._unsent.append(product)

    def speak(self) -> bool:
        """Emit what there is credit for; whether the final chunk is out.

        Raises PayloadTooLarge and FrameTooLarge, and whatever else keeps the chunk numbered `emitted` from being encoded; no
        chunk may follow it.
        """
        while self._unsent and self.may_emit:
            product = self._unsent.popleft()
            self._send(self._chunk(product))
            self.emitted += 1
            self._credit -= 1
            if product.final:
                return True
        return False

    def grant(self, count: int) -> None:
        self._credit += count
        for _ in range(min(count, len(self._out_bytes))):
            self._bytes -= self._out_bytes.popleft()
            self._granted += 1
        self._connector.cleanup(self._scope, before=self._granted)

    def forget(self) -> None:
        """Everything: what is not said yet, and what is put."""
        self._unsent.clear()
        self._placed = 0
        self._connector.cleanup(self._scope)

    def _chunk(self, product: Product) -> Chunk:
        submit = self._submit
        content = self._connector.put(Key(self._scope, self.emitted), product.payload)
        if not isinstance(content, Inline):
            self._placed = self.emitted + 1
        self._out_bytes.append(content.nbytes)
        self._bytes += content.nbytes
        return Chunk(
            request_id=submit.request_id,
            fence=submit.fence,
            epoch=submit.epoch,
            stage=submit.stage,
            seq=self.emitted,
            kind=self._emits,
            content=content,
            pts=product.pts,
            final=product.final,
            timing=product.timing,
        )
