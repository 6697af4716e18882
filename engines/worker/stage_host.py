"""One stage of this worker: loads its model, tells how far it is, and admits requests to its engine."""

import asyncio
import logging
import textwrap
from collections.abc import Callable

from engines.connectors import Connector
from engines.messages.to_gateway import ErrorKind, StageState, StageStatus
from engines.messages.to_worker import Submit
from engines.pipeline import Bridge, BridgeFactory, Pipeline, PipelineError
from engines.worker.engine import Engine
from engines.worker.foreign import attempt, attempt_async, describe
from engines.worker.loading import EngineFactory
from engines.worker.spec import StageSpec
from engines.worker.stage_request import Outlet, StageRequest

LONGEST_REASON_CHARS = 400
RELOAD_S = 60.0
"""Between two tries to load a stage whose neighbours serve."""

log = logging.getLogger(__name__)


class Refused(Exception):
    """The stage does not open the request."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class StageHost:
    def __init__(
        self,
        pipeline: Pipeline,
        spec: StageSpec,
        connector: Connector,
        load: EngineFactory,
        announce: Callable[[StageStatus], None],
    ) -> None:
        """Raises PipelineError when the pipeline has no such stage."""
        self.loaded = asyncio.Event()
        """Set when loading has ended, well or badly."""
        self.status = StageStatus(spec.stage, StageState.LOADING, spec.slots, f"loading {spec.model}")
        self.engine: Engine | None = None
        self._pipeline = pipeline
        self._stage = pipeline.stage(spec.stage)
        self._spec = spec
        self._connector = connector
        self._load = load
        self._announce = announce

    async def run(self) -> None:
        """Load, then work. A model that cannot be loaded leaves the worker's other stages alone, and its own stage FAILED until
        a later try succeeds."""
        engine = await self._try_to_load()
        while engine is None:
            await asyncio.sleep(RELOAD_S)
            engine = await self._try_to_load()
        self.engine = engine
        async with asyncio.TaskGroup() as group:
            group.create_task(engine.run())
            # The second task starts after the first, so the engine runs when the first request comes.
            group.create_task(self._ready())

    async def _try_to_load(self) -> Engine | None:
        outcome = await attempt_async(self._load(self._stage, self._spec))
        if not isinstance(outcome, Exception):
            return outcome
        reason = textwrap.shorten(describe(outcome)[1], LONGEST_REASON_CHARS, placeholder=" …")
        log.error("stage %s cannot be loaded: %s", self._spec.stage, reason)
        log.debug("stage %s: where loading failed", self._spec.stage, exc_info=outcome)
        self._become(StageState.FAILED, reason)
        return None

    def admit(self, submit: Submit, outlet: Outlet) -> tuple[Engine, StageRequest]:
        """Raises Refused."""
        if self.engine is None or self.status.state is not StageState.READY:
            if self.status.state is StageState.FAILED:
                raise Refused(ErrorKind.ENGINE, f"stage {submit.stage!r} cannot be loaded: {self.status.note}")
            raise Refused(ErrorKind.OVERLOADED, f"stage {submit.stage!r} is not ready yet: {self.status.note}")
        if submit.pipeline != self._pipeline.name:
            raise Refused(ErrorKind.INVALID, f"pipeline: expected {self._pipeline.name!r}, got {submit.pipeline!r}")
        if not isinstance(submit.parameters, self._stage.parameters):
            expected, got = self._stage.parameters.__name__, type(submit.parameters).__name__
            raise Refused(ErrorKind.INVALID, f"parameters of stage {submit.stage!r}: expected {expected}, got {got}")
        bridge = self._bridge(submit)
        if self.engine.free_slots <= 0:
            raise Refused(ErrorKind.OVERLOADED, f"stage {submit.stage!r}: all {self.status.slots} slots are taken")
        request = StageRequest(submit, self._stage.emits, bridge, outlet, self._connector)
        self.engine.submit(request)
        return self.engine, request

    def _bridge(self, submit: Submit) -> Bridge | None:
        try:
            factory = self._factory(submit.upstreams)
        except PipelineError as unknown:
            raise Refused(ErrorKind.INVALID, f"upstreams: {unknown}") from unknown
        if factory is None:
            return None
        bridge = attempt(factory, submit.parameters)
        if isinstance(bridge, Exception):
            raise Refused(*describe(bridge)) from bridge
        return bridge

    def _factory(self, upstreams: tuple[str, ...]) -> BridgeFactory | None:
        return self._pipeline.edge(upstreams[0], self._stage.name).bridge if upstreams else self._stage.intake

    async def _ready(self) -> None:
        self._become(StageState.READY, "")

    def _become(self, state: StageState, note: str) -> None:
        status = StageStatus(self._spec.stage, state, self._spec.slots, note)
        self.loaded.set()
        if status != self.status:
            self.status = status
            self._announce(status)
