"""One gateway's connection. Its request ids mean nothing outside, and its end aborts all its requests."""

import asyncio
import os
import time
from collections.abc import Mapping

from engines.connectors.inline import InlineConnector
from engines.messages import to_worker
from engines.messages.framing import FrameReader
from engines.messages.to_gateway import Aborted, ErrorKind, Failed, Report, ToGateway, Welcome
from engines.messages.to_worker import PROTOCOL, Abort, Grant, Hello, Probe, Push, Submit, ToWorker
from engines.worker.engine import Engine
from engines.worker.foreign import attempt, describe
from engines.worker.memory import resident_bytes
from engines.worker.outbox import Outbox
from engines.worker.stage_host import Refused, StageHost
from engines.worker.stage_request import StageRequest


class ProtocolViolation(ConnectionError):
    """The peer does not speak our protocol; the connection cannot go on."""


class PeerLeft(ConnectionError):
    """The peer closed the connection between two frames."""


class Namespace:
    def __init__(
        self,
        worker: str,
        serial: int,
        hosts: Mapping[str, StageHost],
        connector: InlineConnector,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._worker = worker
        self._serial = serial
        self._hosts = hosts
        self._connector = connector
        self._reader = FrameReader(reader, to_worker.decoder)
        self._writer = writer
        self._outbox = Outbox()
        self._server: str | None = None
        self._open: dict[str, dict[str, tuple[Engine, StageRequest]]] = {}
        """By request id, then by stage."""
        self._aborting: set[str] = set()

    @property
    def namespace(self) -> str:
        return f"{self._server}#{self._serial}"

    def send(self, message: ToGateway) -> None:
        if self._server is not None:
            self._outbox.send(message)

    def forget(self, request: StageRequest) -> None:
        stages = self._open.get(request.submit.request_id, {})
        if request.submit.stage in stages and stages[request.submit.stage][1] is request:
            del stages[request.submit.stage]
        if not stages:
            self._open.pop(request.submit.request_id, None)

    def give_up(self, request: StageRequest, kind: ErrorKind, message: str) -> None:
        if (found := self._find(request.submit.request_id, request.submit.stage)) is not None and found[1] is request:
            found[0].fail(request, kind, message)

    async def serve(self) -> None:
        """Raises an ExceptionGroup of ConnectionErrors when the peer leaves, breaks the protocol or is lost."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._outbox.write_to(self._writer))
                await self._receive(group)
        finally:
            self._abort_everything()
            self._writer.close()

    async def _receive(self, group: asyncio.TaskGroup) -> None:
        self._greet(await self._next())
        while True:
            message = await self._next()
            if isinstance(message, Abort):
                self._abort(message.request_id, group)
            else:
                self._handle(message)
            await self._outbox.room()

    async def _next(self) -> ToWorker:
        message = await self._reader.next()
        if message is None:
            raise PeerLeft("closed by the gateway")
        return message

    def _greet(self, hello: ToWorker) -> None:
        if not isinstance(hello, Hello):
            raise ProtocolViolation(f"first message: expected hello, got {type(hello).__name__}")
        if hello.protocol != PROTOCOL:
            raise ProtocolViolation(f"protocol: expected {PROTOCOL}, got {hello.protocol}")
        self._server = hello.server
        statuses = tuple(host.status for host in self._hosts.values())
        self.send(Welcome(self._worker, os.getpid(), statuses))

    def _handle(self, message: ToWorker) -> None:
        match message:
            case Submit():
                self._submit(message)
            case Push():
                self._push(message)
            case Grant():
                self._grant(message)
            case Probe():
                engines = (host.engine for host in self._hosts.values())
                self.send(Report(tuple(engine.report() for engine in engines if engine), resident_bytes()))
            case _:
                raise ProtocolViolation(f"message: did not expect {type(message).__name__} here")

    def _submit(self, submit: Submit) -> None:
        if self._find(submit.request_id, submit.stage) is not None:
            raise ProtocolViolation(f"submit: request {submit.request_id!r} is open at stage {submit.stage!r} already")
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
        if (found := self._find(push.request_id, push.stage)) is None:
            return
        engine, request = found
        payload = self._connector.read(push.content)
        refused = attempt(request.push, payload, final=push.final, now=time.monotonic())
        if isinstance(refused, Exception):
            engine.fail(request, *describe(refused))
        else:
            engine.changed(request)

    def _grant(self, grant: Grant) -> None:
        if (found := self._find(grant.request_id, grant.stage)) is not None:
            engine, request = found
            request.grant(grant.count)
            engine.changed(request)

    def _abort(self, request_id: str, group: asyncio.TaskGroup) -> None:
        """A second Abort while the first is under way is answered by the same Aborted."""
        if request_id not in self._aborting:
            requests = self._abort_stages(request_id)
            self._aborting.add(request_id)
            group.create_task(self._acknowledge(request_id, requests))

    async def _acknowledge(self, request_id: str, requests: list[StageRequest]) -> None:
        for request in requests:
            await request.closed.wait()
        self._aborting.discard(request_id)
        self.send(Aborted(request_id))

    def _abort_stages(self, request_id: str) -> list[StageRequest]:
        stages = list(self._open.get(request_id, {}).values())
        for engine, request in stages:
            engine.abort(request)
        return [request for _, request in stages]

    def _abort_everything(self) -> None:
        for request_id in list(self._open):
            self._abort_stages(request_id)

    def _find(self, request_id: str, stage: str) -> tuple[Engine, StageRequest] | None:
        return self._open.get(request_id, {}).get(stage)
