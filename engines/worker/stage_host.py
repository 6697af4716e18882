"""One stage of this worker: loads its model, tells how far it is, and admits requests to its engine."""

import asyncio
import logging
import textwrap
from collections.abc import Callable

from engines.connectors.process import Connectors
from engines.messages.to_gateway import ErrorKind, StageReport, StageState, StageStatus
from engines.messages.to_worker import Submit
from engines.models.text import ModelDied
from engines.pipeline import Pipeline
from engines.worker.engine import Engine
from engines.worker.foreign import attempt, attempt_async, describe
from engines.worker.loading import EngineFactory
from engines.worker.slots import Refused, Slots
from engines.worker.spec import StageSpec
from engines.worker.stage_request import Outlet, StageRequest
from engines.worker.ways_in import ways_in

LONGEST_REASON_CHARS = 400
RELOAD_S = 60.0
"""Between two tries to load a stage whose neighbours serve."""

log = logging.getLogger(__name__)


class StageHost:
    def __init__(
        self,
        pipeline: Pipeline,
        spec: StageSpec,
        connectors: Connectors,
        load: EngineFactory,
        announce: Callable[[StageStatus], None],
    ) -> None:
        """Raises PipelineError when the pipeline has no such stage."""
        self.loaded = asyncio.Event()
        """Set when loading has ended, well or badly."""
        self.status = StageStatus(spec.stage, StageState.LOADING, spec.slots, f"loading {spec.model}")
        self.engine: Engine | None = None
        self._slots: Slots | None = None
        self._pipeline = pipeline
        self._stage = pipeline.stage(spec.stage)
        self._spec = spec
        self._connectors = connectors
        self._load = load
        self._announce = announce

    async def run(self) -> None:
        """Load, then work. A model that cannot be loaded leaves the worker's other stages alone, and its own stage FAILED until
        a later try succeeds."""
        engine = await self._try_to_load()
        while engine is None:
            await asyncio.sleep(RELOAD_S)
            engine = await self._try_to_load()
        self.engine, self._slots = engine, Slots(self._spec.stage, self._spec.slots, engine)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._work(engine, self._slots))
            # The second task starts after the first, so the engine runs when the first request comes.
            group.create_task(self._ready())

    async def _work(self, engine: Engine, slots: Slots) -> None:
        try:
            await engine.run()
        except* ModelDied as died:
            slots.close(str(died.exceptions[0]))
            raise

    async def _try_to_load(self) -> Engine | None:
        outcome = await attempt_async(self._load(self._stage, self._spec))
        if not isinstance(outcome, Exception):
            return outcome
        reason = textwrap.shorten(describe(outcome)[1], LONGEST_REASON_CHARS, placeholder=" …")
        log.error("stage %s cannot be loaded: %s", self._spec.stage, reason)
        log.debug("stage %s: where loading failed", self._spec.stage, exc_info=outcome)
        self._become(StageState.FAILED, reason)
        return None

    def admit(self, submit: Submit, outlet: Outlet) -> StageRequest:
        """Open it, or let it wait for a slot. Raises Refused."""
        slots = self._ready_slots(submit.stage)
        self._check(submit)
        request = self._request(submit, outlet, slots)
        slots.enter(request)
        return request

    def report(self) -> StageReport | None:
        """None: the stage does not serve."""
        return self._slots.report() if self._slots else None

    def _ready_slots(self, stage: str) -> Slots:
        if self._slots is not None and self.status.state is StageState.READY:
            return self._slots
        if self.status.state is StageState.FAILED:
            raise Refused(ErrorKind.ENGINE, f"stage {stage!r} cannot be loaded: {self.status.note}")
        raise Refused(ErrorKind.OVERLOADED, f"stage {stage!r} is not ready yet: {self.status.note}")

    def _check(self, submit: Submit) -> None:
        if submit.pipeline != self._pipeline.name:
            raise Refused(ErrorKind.INVALID, f"pipeline: expected {self._pipeline.name!r}, got {submit.pipeline!r}")
        if not isinstance(submit.parameters, self._stage.parameters):
            expected, got = self._stage.parameters.__name__, type(submit.parameters).__name__
            raise Refused(ErrorKind.INVALID, f"parameters of stage {submit.stage!r}: expected {expected}, got {got}")

    def _request(self, submit: Submit, outlet: Outlet, slots: Slots) -> StageRequest:
        try:
            connector = self._connectors.named(submit.connector)
        except ValueError as unknown:
            raise Refused(ErrorKind.INVALID, str(unknown)) from unknown
        ways = attempt(ways_in, self._pipeline, submit)
        if isinstance(ways, Exception):
            raise Refused(*describe(ways)) from ways
        return StageRequest(submit, self._stage.emits, ways, connector, self._connectors, outlet, slots)

    async def _ready(self) -> None:
        self._become(StageState.READY, "")

    def _become(self, state: StageState, note: str) -> None:
        status = StageStatus(self._spec.stage, state, self._spec.slots, note)
        self.loaded.set()
        if status != self.status:
            self.status = status
            self._announce(status)
