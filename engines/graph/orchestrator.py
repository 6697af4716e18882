"""Owns the requests: admits them, picks their replicas, routes what the workers say, ends them. Nothing else."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from engines.connectors.process import Connectors
from engines.graph.attempt import Attempt
from engines.graph.graph_counters import GraphCounters, Outcome
from engines.graph.placement import connector
from engines.graph.pool import Pool
from engines.graph.request_stream import RunningRequest
from engines.graph.stage_run import WINDOW_BYTES, WINDOW_CHUNKS, Outlet, StageRun
from engines.graph.worker_link import WorkerLink
from engines.messages.to_gateway import Aborted, Emit, ErrorKind, Failed, Taken, ToGateway
from engines.messages.to_worker import ServiceClass, Submit
from engines.parameters import Parameters
from engines.pipeline import Pipeline, PipelineError
from engines.requests import Request, RequestFailed
from engines.site import NOWHERE, Site

AT_ONCE: Mapping[ServiceClass, float] = dict.fromkeys(ServiceClass, 0.0)
"""No request waits for a slot."""


class Orchestrator:
    """Implements engines.requests.Graph over the workers that it is given with `serve`.

    `deployed` names the stages that some worker runs or will run. `server` tells this gateway's payloads from others', `site` is
    where it runs.
    `wait_ms` is how long a request of each class may wait for a slot.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        deployed: Iterable[str],
        connectors: Connectors,
        *,
        server: str = "gateway",
        site: Site = NOWHERE,
        wait_ms: Mapping[ServiceClass, float] = AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
        on_status: Callable[[], None] = lambda: None,
    ) -> None:
        self.counters = GraphCounters()
        self.pools = {stage: Pool(stage) for stage in deployed}
        self._pipeline = pipeline
        self._connectors = connectors
        self._server = server
        self._site = site
        self._wait_ms = wait_ms
        self._clock = clock
        self.on_status = on_status
        self._requests: dict[str, RunningRequest] = {}
        self._attempts: dict[str, Attempt] = {}
        """By the id that the workers know. It is never used again: one that has been given up may still be worked on."""
        self._tries = itertools.count()
        self._draining = False

    async def serve(self, link: WorkerLink) -> None:
        """Give this worker work until its connection ends. Raises FrameError when it ends by nonsense."""
        for stage in link.stages:
            if stage in self.pools:
                self.pools[stage].add(link)
        self.on_status()
        await link.run(self)

    async def submit(self, request: Request) -> RunningRequest:
        if self._draining:
            raise RequestFailed(ErrorKind.OVERLOADED, request.entry, "the server is shutting down")
        if request.request_id in self._requests:
            raise _invalid(request.entry, f"request_id: expected a new one, got {request.request_id!r}, which is running")
        scope = f"{self._server}/{request.request_id}/{request.fence}/>{request.entry}"
        running = RunningRequest(request, self._connectors, scope, self, self._clock)
        running.open()
        self._requests[request.request_id] = running
        self.counters.submitted += 1
        return running

    def offers(self, output: str) -> bool:
        return self._pipeline.offers(output, self.pools)

    def running(self) -> int:
        """Attempts of which some worker may still work on something."""
        return len(self._attempts)

    async def drain(self) -> None:
        """Admit nothing more and abort what runs."""
        self._draining = True
        running = list(self._requests.values())
        for one in running:
            one.fail(ErrorKind.OVERLOADED, one.request.entry, "the server is shutting down")
        for one in running:
            await one.abort()

    # what running requests ask for

    def open(self, owner: RunningRequest) -> Attempt:
        request = owner.request
        active = self._active_stages(request)
        parameters = {stage: self._parameters(request, stage) for stage in active}
        wire_id = f"{request.request_id}~{next(self._tries)}"
        stages = self._stages(request, wire_id, active)
        attempt = Attempt(wire_id, request, stages, owner, self._clock, self._settled)
        self._attempts[wire_id] = attempt
        for stage, run in stages.items():
            try:
                run.link.send(self._submission(request, run, wire_id, parameters[stage]))
            except (ValueError, OverflowError) as unsendable:
                # Too large a frame or number, or text that is no Unicode. The workers that were told already hear an abort.
                attempt.end()
                raise _invalid(stage, f"parameters.{stage}: {unsendable}") from unsendable
        return attempt

    def ended(self, owner: RunningRequest, outcome: Outcome) -> None:
        self.counters.end(outcome, owner.timing())
        self._forget_if_over(owner.request.request_id)

    # what the workers say

    def received(self, link: WorkerLink, message: ToGateway) -> None:
        match message:
            case Emit(chunk):
                if attempt := self._attempts.get(chunk.request_id):
                    attempt.emitted(link, chunk)
            case Taken(wire_id, stage, source, count):
                if attempt := self._attempts.get(wire_id):
                    attempt.taken(link, stage, source, count)
            case Failed(wire_id, stage, kind, text):
                if attempt := self._attempts.get(wire_id):
                    attempt.failed(link, stage, kind, text)
            case Aborted(wire_id):
                if attempt := self._attempts.get(wire_id):
                    attempt.acknowledged(link)
            case _:
                self.on_status()

    def lost(self, link: WorkerLink) -> None:
        for pool in self.pools.values():
            pool.remove(link)
        for attempt in list(self._attempts.values()):
            attempt.lost(link)
        self.on_status()

    # admission

    def _active_stages(self, request: Request) -> tuple[str, ...]:
        if not request.outputs:
            raise _invalid(request.entry, "outputs: expected at least one, got none")
        try:
            active = self._pipeline.active_stages(request.entry, request.outputs)
        except PipelineError as wrong:
            raise _invalid(request.entry, str(wrong)) from wrong
        for stage in active:
            if stage not in self.pools:
                raise _invalid(stage, f"this deployment does not run it; it runs {', '.join(self.pools)}")
        return active

    def _parameters(self, request: Request, stage: str) -> Parameters:
        expected = self._pipeline.stage(stage).parameters
        if stage not in request.parameters:
            try:
                return msgspec.convert({}, expected)
            except msgspec.ValidationError as missing:
                raise _invalid(stage, f"parameters.{stage}: expected {expected.__name__}, got none ({missing})") from missing
        given = request.parameters[stage]
        if not isinstance(given, expected):
            raise _invalid(stage, f"parameters.{stage}: expected {expected.__name__}, got {type(given).__name__}")
        return given

    def _stages(self, request: Request, wire_id: str, active: tuple[str, ...]) -> dict[str, StageRun]:
        """On the replicas that they are going to run on, and connected."""
        stages: dict[str, StageRun] = {}
        try:
            for stage in active:
                sources = self._pipeline.upstreams(stage, active) if stage != request.entry else ("",)
                link = self.pools[stage].take(request.session_id)
                stages[stage] = StageRun(wire_id, stage, link, sources, connector(self._site, [link.site]))
        except RequestFailed:
            self._give_back(stages)
            raise
        for run in stages.values():
            for source in filter(None, run.intakes):
                stages[source].targets.append(run)
        for output in dict.fromkeys(request.outputs):
            stages[self._pipeline.output_stage(output)].outlets.append(Outlet(output))
        return stages

    def _submission(self, request: Request, run: StageRun, wire_id: str, parameters: Parameters) -> Submit:
        return Submit(
            request_id=wire_id,
            pipeline=self._pipeline.name,
            stage=run.stage,
            upstreams=tuple(filter(None, run.intakes)),
            fence=request.fence,
            epoch=request.epoch,
            session_id=request.session_id,
            service_class=request.service_class,
            parameters=parameters,
            window=WINDOW_CHUNKS,
            window_bytes=WINDOW_BYTES,
            wait_ms=self._wait_ms[request.service_class],
            connector=connector(run.link.site, self._readers(run)),
            deadline_ms=request.deadline_ms,
        )

    def _readers(self, run: StageRun) -> list[Site]:
        """Where those are who read what this stage emits."""
        return [*(target.link.site for target in run.targets), *(self._site for _ in run.outlets)]

    def _settled(self, attempt: Attempt) -> None:
        del self._attempts[attempt.wire_id]
        self._give_back(attempt.stages)
        self.counters.given_up += attempt.given_up
        self._forget_if_over(attempt.request_id)

    def _forget_if_over(self, request_id: str) -> None:
        if (running := self._requests.get(request_id)) and running.is_over:
            del self._requests[request_id]

    def _give_back(self, stages: dict[str, StageRun]) -> None:
        for stage, run in stages.items():
            self.pools[stage].give_back(run.link)


def _invalid(stage: str, message: str) -> RequestFailed:
    return RequestFailed(ErrorKind.INVALID, stage, message)
