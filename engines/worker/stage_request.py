"""One stage of one request while it lives in this worker, between the gateway that sent it and the engine that works on it."""

import asyncio
import time
from collections import deque
from collections.abc import Coroutine
from typing import Protocol

from engines.chunks import Chunk, ChunkTiming
from engines.connectors import Connector
from engines.messages.to_gateway import Emit, ErrorKind, Failed, Taken, ToGateway
from engines.messages.to_worker import Push, Submit
from engines.payloads import Payload
from engines.worker.arrivals import Arrivals, Reader
from engines.worker.foreign import attempt, describe
from engines.worker.inbox import Inbox, Input
from engines.worker.voice import Product, Voice
from engines.worker.ways_in import WaysIn

LONGEST_MESSAGE_CHARS = 2_000


class Outlet(Protocol):
    """The gateway's connection, as a request sees it."""

    @property
    def namespace(self) -> str:
        """Tells equal request ids of several connections apart."""
        ...

    def send(self, message: ToGateway) -> None:
        """Raises FrameTooLarge."""
        ...

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """A task that ends with the connection at the latest."""
        ...

    def forget(self, request: "StageRequest") -> None:
        """The request has said its last word, and none of its payloads is left."""
        ...


class Keeper(Protocol):
    """Who grants the slots. Each of these also concerns requests that wait for one, and none of them raises."""

    def changed(self, request: "StageRequest") -> None:
        """It has new input or new credit."""
        ...

    def abort(self, request: "StageRequest") -> None:
        """Silence it now, free what it holds, then set its `closed`. Idempotent."""
        ...

    def fail(self, request: "StageRequest", kind: ErrorKind, message: str) -> None:
        """Free what it holds, then say Failed."""
        ...


class StageRequest:
    """Belongs to the worker's event loop. Once `over`, it is silent: everything said or pushed is dropped. Payloads that it has
    put may stay until they are granted, or until it is aborted.

    `closed` is set when no engine holds anything of the request any more.
    """

    def __init__(
        self, submit: Submit, emits: str, ways_in: WaysIn, connector: Connector, reader: Reader, outlet: Outlet, keeper: Keeper
    ) -> None:
        self.submit = submit
        self.over = False
        self.closed = asyncio.Event()
        self.gateway = outlet.namespace
        self._outlet = outlet
        self._keeper = keeper
        self._unsendable = False
        """A chunk could not be sent: only Failed is to come."""
        scope = f"{self.gateway}/{submit.request_id}/{submit.fence}/{submit.stage}"
        self._inbox = Inbox(submit.stage, ways_in, self._taken)
        self._arrivals = Arrivals(reader, outlet.spawn, self._feed, self._give_up)
        self._voice = Voice(submit, emits, scope, connector, self._emit)

    # what its engine sees

    @property
    def inputs(self) -> deque[Input]:
        return self._inbox.inputs

    @property
    def input_ended_at(self) -> float | None:
        return self._inbox.ended_at

    @property
    def may_emit(self) -> bool:
        return self._voice.may_emit

    def take(self) -> Input:
        """The oldest input."""
        return self._inbox.take()

    def produce(self, payload: Payload, timing: ChunkTiming, *, pts: float = 0.0, final: bool = False) -> None:
        """Emit now, or as soon as the gateway grants it. With `final` the request is over once that chunk is out."""
        if not self.over and not self._unsendable:
            self._voice.add(Product(payload, pts, final, timing))
            self._speak()

    def fail(self, kind: ErrorKind, message: str) -> None:
        if not self.over:
            self._outlet.send(Failed(self.submit.request_id, self.submit.stage, kind, printable(message)))
            self.end()

    def end(self) -> None:
        """Say nothing from here on, and keep nothing. Idempotent."""
        self._fall_silent()
        self._voice.forget()
        self._outlet.forget(self)

    # what its gateway says

    def push(self, push: Push) -> None:
        """Input for a request that is over is dropped: its end and this message have crossed."""
        if self.over:
            return
        refused = attempt(self._inbox.expect, push.source, final=push.final)
        if isinstance(refused, Exception):
            self._give_up(refused)
        else:
            self._arrivals.add(push)

    def grant(self, count: int) -> None:
        self._voice.grant(count)
        if self.over:
            self._forget_if_nothing_is_held()
        elif not self._unsendable:
            self._speak()
            self._keeper.changed(self)

    def abort(self) -> None:
        self._keeper.abort(self)

    # what becomes of that

    def _feed(self, push: Push, payload: Payload) -> None:
        if not self.over:
            self._inbox.feed(push.source, payload, final=push.final, now=time.monotonic())
            self._keeper.changed(self)

    def _taken(self, source: str) -> None:
        self._outlet.send(Taken(self.submit.request_id, self.submit.stage, source, 1))

    def _speak(self) -> None:
        done = attempt(self._voice.speak)
        if isinstance(done, Exception):
            self._unsendable = True
            self._keeper.fail(self, ErrorKind.ENGINE, f"chunk {self._voice.emitted}: {describe(done)[1]}")
        elif done:
            self._fall_silent()
            self._forget_if_nothing_is_held()

    def _emit(self, chunk: Chunk) -> None:
        self._outlet.send(Emit(chunk))

    def _give_up(self, error: Exception) -> None:
        self._keeper.fail(self, *describe(error))

    def _fall_silent(self) -> None:
        self.over = True
        self._arrivals.stop()
        self._inbox.inputs.clear()

    def _forget_if_nothing_is_held(self) -> None:
        if not self._voice.holds_payloads:
            self.end()


def printable(message: str) -> str:
    """What a model says of its failure, so that it fits into a message whatever it is."""
    return message[:LONGEST_MESSAGE_CHARS].encode(errors="replace").decode()
