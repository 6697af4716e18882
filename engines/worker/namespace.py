"""One gateway's connection. Its request ids mean nothing outside, and its end aborts all its requests."""

import asyncio
import os
from collections.abc import Coroutine, Mapping

from engines.connectors.process import Connectors
from engines.messages import to_gateway, to_worker
from engines.messages.connection import Connection
from engines.messages.to_gateway import Aborted, ErrorKind, Failed, Report, ToGateway, Welcome
from engines.messages.to_worker import PROTOCOL, Abort, Grant, Hello, Probe, Push, Submit, ToWorker
from engines.site import Site
from engines.worker.memory import resident_bytes
from engines.worker.slots import Refused
from engines.worker.stage_host import StageHost
from engines.worker.stage_request import StageRequest

HELLO_LIMIT_S = 5.0
"""From the connection to the greeting, which gateways send at once."""
SILENCE_LIMIT_S = 30.0
"""A gateway asks every 5 s how its workers are. Who has missed six times is stopped, or gone without a word."""


class ProtocolViolation(ConnectionError):
    """The peer does not speak our protocol; the connection cannot go on."""


class PeerLeft(ConnectionError):
    """The peer closed the connection between two frames."""


class PeerSilent(ConnectionError):
    """The peer says nothing, and others wait for what it has open."""


class Namespace:
    """`connection` is the protocol of its transport; `serve` must have begun when that is made. `is_shared`: there may be other
    gateways. The only one may be silent as long as it likes: a worker that hangs up on it would be started again."""

    def __init__(
        self,
        worker: str,
        serial: int,
        hosts: Mapping[str, StageHost],
        connectors: Connectors,
        site: Site,
        *,
        is_shared: bool,
    ) -> None:
        self._worker = worker
        self._serial = serial
        self._hosts = hosts
        self._connectors = connectors
        self._site = site
        self._is_shared = is_shared
        # Policy of what waits for the gateway: block. Chunks are bounded by the credit of their requests; everything else answers
        # a message of the gateway, of which no more are read while it does not read.
        self.connection = Connection(to_worker.decoder, to_gateway.encoder, self, first_at_once=True, waits_for_reader=True)
        self._group = asyncio.TaskGroup()
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Exception | None] = self._loop.create_future()
        self._heard_at = self._loop.time()
        self._next_look: asyncio.TimerHandle | None = None
        self._server: str | None = None
        self._open: dict[str, dict[str, StageRequest]] = {}
        """By request id, then by stage: what runs, waits for a slot, or has payloads that are not granted."""
        self._aborting: set[str] = set()

    @property
    def namespace(self) -> str:
        return f"{self._server}#{self._serial}"

    def send(self, message: ToGateway) -> None:
        if self._server is not None:
            self.connection.send(message)

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        return self._group.create_task(work)

    def forget(self, request: StageRequest) -> None:
        stages = self._open.get(request.submit.request_id, {})
        if stages.get(request.submit.stage) is request:
            del stages[request.submit.stage]
        if not stages:
            self._open.pop(request.submit.request_id, None)

    async def serve(self) -> None:
        """Raises an ExceptionGroup when the peer leaves, breaks the protocol or is lost, or with what a handler raised."""
        self._look()
        try:
            async with self._group:
                if reason := await self._ended:
                    raise reason
                raise PeerLeft("closed by the gateway")
        finally:
            if self._next_look is not None:
                self._next_look.cancel()
            self._abort_everything()
            self.connection.close()

    def received(self, message: ToWorker) -> None:
        self._heard_at = self._loop.time()
        if self._server is None:
            self._greet(message)
        elif isinstance(message, Abort):
            self._abort(message)
        else:
            self._handle(message)

    def lost(self, reason: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)

    def _look(self) -> None:
        """Whether it has fallen silent; again when it can have at the earliest. After a standstill of our own, what has come
        meanwhile is read before this is called."""
        if self._server is not None and not self._is_shared:
            return
        limit_s = HELLO_LIMIT_S if self._server is None else SILENCE_LIMIT_S
        due = self._heard_at + limit_s
        if self._loop.time() < due:
            self._next_look = self._loop.call_at(due, self._look)
            return
        silent = PeerSilent(f"nothing was heard of it for {limit_s:g} s")
        self.connection.close(silent)
        self.lost(silent)

    def _greet(self, hello: ToWorker) -> None:
        if not isinstance(hello, Hello):
            raise ProtocolViolation(f"first message: expected hello, got {type(hello).__name__}")
        if hello.protocol != PROTOCOL:
            raise ProtocolViolation(f"protocol: expected {PROTOCOL}, got {hello.protocol}")
        if not hello.server or {"#", "/"} & set(hello.server):
            raise ProtocolViolation(f"server: expected a name without # and /, which keys are made of, got {hello.server!r}")
        self._server = hello.server
        statuses = tuple(host.status for host in self._hosts.values())
        self.send(Welcome(self._worker, os.getpid(), statuses, site=self._site))

    def _handle(self, message: ToWorker) -> None:
        match message:
            case Submit():
                self._submit(message)
            case Push():
                self._push(message)
            case Grant():
                self._grant(message)
            case Probe():
                reports = (host.report() for host in self._hosts.values())
                self.send(Report(tuple(report for report in reports if report), resident_bytes(), self._connectors.health()))
            case _:
                raise ProtocolViolation(f"message: did not expect {type(message).__name__} here")

    def _submit(self, submit: Submit) -> None:
        if (known := self._find(submit.request_id, submit.stage)) is not None:
            if not known.over:
                raise ProtocolViolation(f"submit: request {submit.request_id!r} is open at stage {submit.stage!r} already")
            known.end()
        host = self._hosts.get(submit.stage)
        try:
            if host is None:
                raise Refused(ErrorKind.INVALID, f"stage: expected one of {', '.join(self._hosts)}, got {submit.stage!r}")
            opened = host.admit(submit, self)
        except Refused as refused:
            self.send(Failed(submit.request_id, submit.stage, refused.kind, refused.message))
        else:
            self._open.setdefault(submit.request_id, {})[submit.stage] = opened

    def _push(self, push: Push) -> None:
        """Input for a request that has ended meanwhile is dropped: its end and this message have crossed."""
        if (request := self._find(push.request_id, push.stage)) is not None:
            request.push(push)

    def _grant(self, grant: Grant) -> None:
        if grant.count < 0:
            raise ProtocolViolation(f"grant: expected count ≥ 0, got {grant.count}")
        if (request := self._find(grant.request_id, grant.stage)) is not None:
            request.grant(grant.count)

    def _abort(self, abort: Abort) -> None:
        """A second Abort while the first is under way is answered by the same Aborted."""
        request_id = abort.request_id
        if request_id in self._aborting:
            return
        requests = self._abort_stages(request_id, abort.keeps)
        if all(request.closed.is_set() for request in requests):
            self.send(Aborted(request_id))
        else:
            self._aborting.add(request_id)
            self.spawn(self._acknowledge(request_id, requests))

    async def _acknowledge(self, request_id: str, requests: list[StageRequest]) -> None:
        for request in requests:
            await request.closed.wait()
        self._aborting.discard(request_id)
        self.send(Aborted(request_id))

    def _abort_stages(self, request_id: str, keeps: tuple[str, ...] = ()) -> list[StageRequest]:
        requests = [
            request for stage, request in self._open.get(request_id, {}).items() if stage not in keeps or not request.over
        ]
        for request in requests:
            request.abort()
        return requests

    def _abort_everything(self) -> None:
        for request_id in list(self._open):
            self._abort_stages(request_id)

    def _find(self, request_id: str, stage: str) -> StageRequest | None:
        return self._open.get(request_id, {}).get(stage)
