"""One stage of one request while it lives in this worker: its inbox, its credit and its voice towards the gateway."""

import asyncio
from collections import deque
from typing import NamedTuple, Protocol

from engines.chunks import Chunk, ChunkTiming
from engines.connectors import Connector
from engines.connectors.contents import Key
from engines.messages.framing import FrameTooLarge
from engines.messages.to_gateway import Emit, ErrorKind, Failed, Taken, ToGateway
from engines.messages.to_worker import PUSH_WINDOW, Submit
from engines.models import InvalidInput
from engines.payloads import Payload
from engines.pipeline import Bridge


class Outlet(Protocol):
    """The gateway's connection, as a request sees it."""

    @property
    def namespace(self) -> str:
        """Tells equal request ids of several connections apart."""
        ...

    def send(self, message: ToGateway) -> None:
        """Raises FrameTooLarge."""
        ...

    def forget(self, request: "StageRequest") -> None:
        """The request has said its last word."""
        ...

    def give_up(self, request: "StageRequest", kind: ErrorKind, message: str) -> None:
        """Have its engine fail the request: free what it holds, then say Failed."""
        ...


class Input(NamedTuple):
    """`pushed_at` is in seconds of the engine's clock; `completes_push`: the last input that came out of one Push."""

    payload: Payload
    pushed_at: float
    completes_push: bool


class Product(NamedTuple):
    payload: Payload
    pts: float
    final: bool
    timing: ChunkTiming


class StageRequest:
    """Belongs to the worker's event loop. Once `over`, it is silent: everything said or pushed is dropped.

    Its engine sets `closed` when it holds nothing of the request any more.
    """

    def __init__(self, submit: Submit, emits: str, bridge: Bridge | None, outlet: Outlet, connector: Connector) -> None:
        self.submit = submit
        self.inputs: deque[Input] = deque()
        """Bounded by PUSH_WINDOW pushes; overflow policy: refuse (the gateway broke the contract)."""
        self.input_ended_at: float | None = None
        self.over = False
        self.closed = asyncio.Event()
        self._emits = emits
        self._bridge = bridge
        self._outlet = outlet
        self._connector = connector
        self._untaken_pushes = 0
        self._credit = submit.window
        self._seq = 0
        self._unsendable = False
        """A chunk could not be sent: only Failed is to come."""
        self._unsent: deque[Product] = deque()
        """What one step made beyond the credit: bounded, because no step is run without credit."""

    @property
    def may_emit(self) -> bool:
        return self._credit > 0

    def push(self, payload: Payload, *, final: bool, now: float) -> None:
        """Raises InvalidInput, and whatever the bridge raises."""
        if self.input_ended_at is not None:
            raise InvalidInput(f"stage {self.submit.stage!r}: expected no input after the final one, got more")
        if self._untaken_pushes >= PUSH_WINDOW:
            raise InvalidInput(f"stage {self.submit.stage!r}: expected at most {PUSH_WINDOW} pushes not yet taken, got more")
        inputs = self._bridged(payload, final=final)
        self._untaken_pushes += 1
        for position, bridged in enumerate(inputs, start=1):
            self.inputs.append(Input(bridged, now, completes_push=position == len(inputs)))
        if not inputs:
            self._taken()
        if final:
            self.input_ended_at = now

    def take(self) -> Input:
        """The oldest input; the gateway may push another one for it."""
        oldest = self.inputs.popleft()
        if oldest.completes_push:
            self._taken()
        return oldest

    def produce(self, payload: Payload, timing: ChunkTiming, *, pts: float = 0.0, final: bool = False) -> None:
        """Emit now, or as soon as the gateway grants it. With `final` the request is over once that chunk is out."""
        if not self.over and not self._unsendable:
            self._unsent.append(Product(payload, pts, final, timing))
            self._send_granted()

    def grant(self, count: int) -> None:
        self._credit += count
        self._send_granted()

    def fail(self, kind: ErrorKind, message: str) -> None:
        if not self.over:
            self._outlet.send(Failed(self.submit.request_id, self.submit.stage, kind, message))
            self.end()

    def end(self) -> None:
        """Say nothing from here on."""
        if not self.over:
            self.over = True
            self.inputs.clear()
            self._unsent.clear()
            self._connector.cleanup(self._scope)
            self._outlet.forget(self)

    @property
    def _scope(self) -> str:
        return f"{self._outlet.namespace}/{self.submit.request_id}/{self.submit.fence}/{self.submit.stage}"

    def _bridged(self, payload: Payload, *, final: bool) -> list[Payload]:
        something = bool(payload.text or payload.arrays or payload.attributes)
        if self._bridge is None:
            return [payload] if something else []
        inputs = self._bridge.feed(payload) if something else []
        return [*inputs, *self._bridge.finish()] if final else inputs

    def _taken(self) -> None:
        self._untaken_pushes -= 1
        self._outlet.send(Taken(self.submit.request_id, self.submit.stage, next(iter(self.submit.upstreams), ""), 1))

    def _send_granted(self) -> None:
        while self._unsent and self._credit > 0:
            product = self._unsent.popleft()
            self._credit -= 1
            try:
                self._outlet.send(Emit(self._chunk(product)))
            except FrameTooLarge as too_large:
                self._unsendable = True
                self._unsent.clear()
                self._outlet.give_up(self, ErrorKind.ENGINE, f"chunk {self._seq}: {too_large}")
                return
            self._seq += 1
            if product.final:
                self.end()

    def _chunk(self, product: Product) -> Chunk:
        submit = self.submit
        return Chunk(
            request_id=submit.request_id,
            fence=submit.fence,
            epoch=submit.epoch,
            stage=submit.stage,
            seq=self._seq,
            kind=self._emits,
            content=self._connector.put(Key(self._scope, self._seq), product.payload),
            pts=product.pts,
            final=product.final,
            timing=product.timing,
        )
