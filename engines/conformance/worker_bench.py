"""One stage of a deployment in a real worker process, asked through the graph as sessions do."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import msgspec

from engines.conformance import NotApplicable
from engines.conformance.samples import GenerationSamples, Samples
from engines.deployment import GraphSettings, WorkerSettings
from engines.messages.to_gateway import StageState
from engines.parameters import Parameters
from engines.payloads import Payload
from engines.pipeline import Pipeline
from engines.requests import Delivery, Request
from engines.runtime import Runtime

READY_LIMIT_S = 180.0
WORKER = "conformance"


class WorkerBench:
    """`hindrance` is why the worker does not serve; empty when it does."""

    def __init__(self, runtime: Runtime, stage: str, output: str, samples: Samples, hindrance: str) -> None:
        self.hindrance = hindrance
        self.runtime = runtime
        self.samples = samples
        self._stage = stage
        self._output = output
        self._serials = itertools.count()

    @classmethod
    @asynccontextmanager
    async def started(cls, settings: GraphSettings, stage: str, samples: Samples) -> AsyncGenerator["WorkerBench"]:
        """Raises NotApplicable for a stage that no caller can feed or hear."""
        output = _output(settings.record(), stage)
        changed = asyncio.Event()
        runtime = Runtime(_only(settings, stage), on_status=changed.set)
        async with runtime.running():
            yield cls(runtime, stage, output, samples, await _hindrance(runtime, changed))

    def inputs(self) -> list[Sequence[Payload]]:
        """Of several requests."""
        if isinstance(self.samples, GenerationSamples):
            return list(self.samples.sequences)
        return [()] * len(self.samples.conversations)

    def request(self, number: int) -> Request:
        """A new one for the inputs of this number."""
        if isinstance(self.samples, GenerationSamples):
            return self._request(self.samples.parameters)
        return self._request(msgspec.structs.replace(self.samples.parameters, messages=self.samples.conversations[number]))

    def wrong_requests(self) -> list[tuple[Request, Payload]]:
        """Each with what it is fed; an empty payload is no input at all."""
        if isinstance(self.samples, GenerationSamples):
            return [(self.request(0), wrong) for wrong in self.samples.wrong if wrong != Payload()]
        conversation = msgspec.structs.replace(self.samples.parameters, messages=self.samples.wrong)
        return [(self._request(conversation), Payload())]

    def _request(self, parameters: Parameters) -> Request:
        return Request(
            request_id=f"conformance-{next(self._serials)}",
            entry=self._stage,
            outputs=(self._output,),
            parameters={self._stage: parameters},
        )

    async def deliveries(self, number: int) -> list[Delivery]:
        """The whole answer. Raises RequestFailed."""
        async with await self.runtime.submit(self.request(number)) as running:
            for payload in self.inputs()[number]:
                await running.push(payload)
            await running.push(Payload(), final=True)
            return [delivery async for delivery in running]

    async def open_requests(self) -> int:
        """What the worker itself says."""
        reports = await self.runtime.reports()
        return sum(stage.active for report in reports.values() for stage in report.stages)


def _only(settings: GraphSettings, stage: str) -> GraphSettings:
    """The deployment with nothing but this stage, in a worker of its own."""
    return msgspec.structs.replace(
        settings, workers={WORKER: WorkerSettings(stages=(stage,))}, stages={stage: settings.stages[stage]}, voices={}
    )


def _output(pipeline: Pipeline, stage: str) -> str:
    outputs = [output.name for output in pipeline.outputs if output.stage == stage]
    if stage not in pipeline.possible_entries() or not outputs:
        raise NotApplicable("only other stages feed it, or hear it")
    return outputs[0]


async def _hindrance(runtime: Runtime, changed: asyncio.Event) -> str:
    try:
        async with asyncio.timeout(READY_LIMIT_S):
            while not runtime.ready.is_set():
                await changed.wait()
                changed.clear()
                if failed := [status.note for status in runtime.stage_statuses() if status.state is StageState.FAILED]:
                    return f"the worker cannot load the stage: {failed[0]}"
    except TimeoutError:
        return f"the worker is not ready after {READY_LIMIT_S:g} s"
    return ""
