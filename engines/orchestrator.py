"""Owns the requests: admits them, picks their replicas, routes what the workers say, ends them. Nothing else."""

import time
from collections.abc import Callable, Iterable

import msgspec

from engines.connectors.inline import InlineConnector
from engines.graph_counters import GraphCounters
from engines.messages.to_gateway import Aborted, Emit, ErrorKind, Failed, Taken, ToGateway
from engines.messages.to_worker import Submit
from engines.parameters import Parameters
from engines.pipeline import Pipeline, PipelineError
from engines.pool import Pool
from engines.request_stream import RunningRequest
from engines.requests import Request, RequestFailed
from engines.stage_run import WINDOW_BYTES, WINDOW_CHUNKS, Outlet, StageRun
from engines.worker_link import WorkerLink


class Orchestrator:
    """Implements engines.requests.Graph over the workers that it is given with `serve`.

    `deployed` names the stages that some worker runs or will run.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        deployed: Iterable[str],
        connector: InlineConnector,
        clock: Callable[[], float] = time.monotonic,
        on_status: Callable[[], None] = lambda: None,
    ) -> None:
        self.counters = GraphCounters()
        self.pools = {stage: Pool(stage) for stage in deployed}
        self._pipeline = pipeline
        self._connector = connector
        self._clock = clock
        self.on_status = on_status
        self._requests: dict[str, RunningRequest] = {}
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
        active = self._active_stages(request)
        parameters = {stage: self._parameters(request, stage) for stage in active}
        running = self._open(request, active)
        self._requests[request.request_id] = running
        self.counters.submitted += 1
        for stage, run in running.stages.items():
            try:
                run.link.send(
                    self._submission(
                        request, stage, parameters[stage], (running.upstream[stage],) if stage in running.upstream else ()
                    )
                )
            except (ValueError, OverflowError) as unsendable:
                # Too large a frame or number, or text that is no Unicode. The workers that were told already hear an abort.
                running.fail(ErrorKind.INVALID, stage, str(unsendable))
                raise _invalid(stage, f"parameters.{stage}: {unsendable}") from unsendable
        return running

    def offers(self, output: str) -> bool:
        return self._pipeline.offers(output, self.pools)

    def running(self) -> int:
        """Requests of which some worker may still hold something."""
        return len(self._requests)

    async def drain(self) -> None:
        """Admit nothing more and abort what runs."""
        self._draining = True
        for running in list(self._requests.values()):
            running.fail(ErrorKind.OVERLOADED, running.request.entry, "the server is shutting down")
        for running in list(self._requests.values()):
            await running.abort()

    # what the workers say

    def received(self, link: WorkerLink, message: ToGateway) -> None:
        match message:
            case Emit(chunk):
                if running := self._requests.get(chunk.request_id):
                    running.emitted(link, chunk)
            case Taken(request_id, stage, _, count):
                if running := self._requests.get(request_id):
                    running.taken(link, stage, count)
            case Failed(request_id, stage, kind, text):
                if running := self._requests.get(request_id):
                    running.failed(link, stage, kind, text)
            case Aborted(request_id):
                if running := self._requests.get(request_id):
                    running.acknowledged(link)
            case _:
                self.on_status()

    def lost(self, link: WorkerLink) -> None:
        for pool in self.pools.values():
            pool.remove(link)
        for running in list(self._requests.values()):
            running.lost(link)
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

    def _open(self, request: Request, active: tuple[str, ...]) -> RunningRequest:
        stages: dict[str, StageRun] = {}
        upstream = {edge.target: edge.source for edge in self._pipeline.edges if {edge.source, edge.target} <= set(active)}
        try:
            for stage in active:
                link = self.pools[stage].take(request.session_id)
                stages[stage] = StageRun(request.request_id, stage, link, upstream.get(stage, ""))
        except RequestFailed:
            self._give_back(stages)
            raise
        for target, source in upstream.items():
            stages[source].targets.append(stages[target])
        for output in dict.fromkeys(request.outputs):
            stages[self._pipeline.output_stage(output)].outlets.append(Outlet(output))
        return RunningRequest(request, stages, upstream, self._connector, self._clock, self._settled)

    def _submission(self, request: Request, stage: str, parameters: Parameters, upstreams: tuple[str, ...]) -> Submit:
        return Submit(
            request_id=request.request_id,
            pipeline=self._pipeline.name,
            stage=stage,
            upstreams=upstreams,
            fence=request.fence,
            epoch=request.epoch,
            session_id=request.session_id,
            service_class=request.service_class,
            parameters=parameters,
            window=WINDOW_CHUNKS,
            window_bytes=WINDOW_BYTES,
            wait_ms=0.0,
            deadline_ms=request.deadline_ms,
        )

    def _settled(self, running: RunningRequest) -> None:
        del self._requests[running.request.request_id]
        self._give_back(running.stages)
        self.counters.given_up += running.given_up
        if running.outcome is not None:
            self.counters.end(running.outcome, running.timing())

    def _give_back(self, stages: dict[str, StageRun]) -> None:
        for stage, run in stages.items():
            self.pools[stage].give_back(run.link)


def _invalid(stage: str, message: str) -> RequestFailed:
    return RequestFailed(ErrorKind.INVALID, stage, message)
