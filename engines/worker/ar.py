"""The AR engine: token streams of a language model that batches by itself.

Back-pressure: without credit the engine does not read on. The model cannot pause one sequence, so meanwhile it works on up to
`max_tokens` and merges what it makes into the one delta that waits; memory stays bounded, and no other request is held up.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from engines.chunks import ChunkTiming
from engines.logs import about
from engines.messages.to_gateway import ErrorKind, StageReport
from engines.models import InvalidInput
from engines.models.text import ModelDied, TextDelta, TextModel
from engines.parameters import Generation, Message, Parameters
from engines.payloads import Payload, Scalar
from engines.worker.counters import Counters
from engines.worker.foreign import attempt_async, describe
from engines.worker.progress_watch import ProgressWatch
from engines.worker.spec import DEFAULT_HANG_LIMIT_S
from engines.worker.stage_request import StageRequest

log = logging.getLogger(__name__)


class ArEngine:
    """One task per open request. Its slot is free before its last word goes out."""

    def __init__(
        self,
        stage: str,
        model: TextModel,
        slots: int,
        clock: Callable[[], float] = time.monotonic,
        hang_limit_s: float = DEFAULT_HANG_LIMIT_S,
    ) -> None:
        """A model that is asked and says nothing for `hang_limit_s` is given up. The longest silence of a healthy one is a batch
        of full prompts."""
        self.slot_freed: Callable[[], None] = lambda: None
        self._model = model
        self._slots = slots
        self._clock = clock
        self._hang_limit_s = hang_limit_s
        self._watch = ProgressWatch(hang_limit_s)
        self._counters = Counters(stage, slots, "tokens")
        self._tasks: dict[StageRequest, asyncio.Task[None]] = {}
        self._changed: dict[StageRequest, asyncio.Event] = {}
        self._group = asyncio.TaskGroup()
        self._generating = 0
        self._ending = False

    async def run(self) -> None:
        """Raises ModelDied in a group, also for a model that hangs, after every open request has been told."""
        async with self._group:
            hung = f"the language model hangs: nothing has come from it for {self._hang_limit_s:g} s"
            self._group.create_task(self._end_after(self._model.died(), "the language model's process died"))
            self._group.create_task(self._end_after(self._watch.hung.wait(), hung))
            try:
                await asyncio.Event().wait()
            finally:
                self._ending = True

    async def _end_after(self, event: Awaitable[object], reason: str) -> None:
        await event
        self._ending = True
        for request in list(self._tasks):
            self.fail(request, ErrorKind.ENGINE, reason)
        raise ModelDied(reason)

    @property
    def free_slots(self) -> int:
        return 0 if self._ending else self._slots - len(self._tasks)

    def submit(self, request: StageRequest) -> None:
        self._changed[request] = asyncio.Event()
        task = self._tasks[request] = self._group.create_task(self._serve(request))
        task.add_done_callback(lambda _: self._release(request))

    def changed(self, request: StageRequest) -> None:
        if event := self._changed.get(request):
            event.set()

    def abort(self, request: StageRequest) -> None:
        request.end()
        if task := self._tasks.get(request):
            task.cancel()

    def fail(self, request: StageRequest, kind: ErrorKind, message: str) -> None:
        if task := self._tasks.get(request):
            task.add_done_callback(lambda _: request.fail(kind, message))
            task.cancel()
        else:
            request.fail(kind, message)

    def report(self) -> StageReport:
        return self._counters.report(active=self._generating, queued=len(self._tasks) - self._generating)

    def shutdown(self) -> None:
        self._model.shutdown()

    def _release(self, request: StageRequest) -> None:
        self._tasks.pop(request, None)
        self._changed.pop(request, None)
        request.closed.set()
        self.slot_freed()

    async def _serve(self, request: StageRequest) -> None:
        farewell = await self._answer(request)
        self._release(request)
        farewell()

    async def _answer(self, request: StageRequest) -> Callable[[], None]:
        """Everything but the last word, which is returned."""
        outcome = await attempt_async(self._work_on(request))
        if not isinstance(outcome, Exception):
            return outcome
        if not isinstance(outcome, InvalidInput | ModelDied):
            with about(session=request.submit.session_id, request=request.submit.request_id):
                log.error("stage %s: the model raised", request.submit.stage, exc_info=outcome)
        kind, message = describe(outcome)
        return lambda: request.fail(kind, message)

    async def _work_on(self, request: StageRequest) -> Callable[[], None]:
        text = await self._input(request)
        if not text and request.submit.upstreams:
            return lambda: self._finish(request, Payload(attributes=usage(None)), ChunkTiming(0.0, 0.0))
        messages = conversation(request.submit.parameters, text)
        if asks_for_ending(request.submit.parameters):
            return await self._weigh(request, messages)
        return await self._generate(request, messages)

    async def _input(self, request: StageRequest) -> str:
        """The text of all inputs, once the last is there."""
        texts: list[str] = []
        while True:
            while request.inputs:
                texts.append(request.take().payload.text)
            if request.input_ended_at is not None:
                return "".join(texts)
            await self._change(request)

    async def _generate(self, request: StageRequest, messages: Sequence[Message]) -> Callable[[], None]:
        self._counters.items += 1
        self._generating += 1
        parameters = request.submit.parameters
        assert isinstance(parameters, Generation)
        queue_ms = (self._clock() - (request.input_ended_at or 0.0)) * 1000
        tokens = 0
        try:
            asked = self._clock()
            async with aclosing(self._watch.each(self._model.generate(messages, parameters))) as deltas:
                async for delta in deltas:
                    run_ms = (self._clock() - asked) * 1000
                    self._count(tokens, delta.completion_tokens, run_ms)
                    timing = ChunkTiming(queue_ms, run_ms)
                    if delta.finish_reason:
                        last = delta
                        return lambda: self._finish(request, Payload(last.text, attributes=usage(last)), timing)
                    if delta.text:
                        self._emit(request, Payload(delta.text, attributes=counts(delta)), timing)
                        queue_ms = 0.0
                    tokens = delta.completion_tokens
                    while not request.may_emit:
                        await self._change(request)
                    asked = self._clock()
            raise RuntimeError("the model's answer ended without a finish reason")
        finally:
            self._generating -= 1

    async def _weigh(self, request: StageRequest, messages: Sequence[Message]) -> Callable[[], None]:
        self._counters.items += 1
        asked = self._clock()
        with self._watch.waiting():
            ending = await self._model.ending(messages)
        timing = ChunkTiming((asked - (request.input_ended_at or asked)) * 1000, (self._clock() - asked) * 1000)
        return lambda: self._finish(request, Payload(attributes={"ending": ending}), timing)

    def _count(self, before: int, now: int, run_ms: float) -> None:
        """The model does not tell its steps: each token counts as one, with the number of answers under way as its batch.
        The first delta is no measure of a step, it holds the prompt's time."""
        self._counters.produced += now - before
        if 0 < before < now:
            self._counters.step(self._generating, run_ms / (now - before))

    def _emit(self, request: StageRequest, payload: Payload, timing: ChunkTiming) -> None:
        self._counters.emitted += 1
        request.produce(payload, timing)

    def _finish(self, request: StageRequest, payload: Payload, timing: ChunkTiming) -> None:
        self._counters.emitted += 1
        request.produce(payload, timing, final=True)

    async def _change(self, request: StageRequest) -> None:
        event = self._changed[request]
        event.clear()
        await event.wait()


def conversation(parameters: Parameters, text: str) -> tuple[Message, ...]:
    """The request's messages; `text`, where there is any, is the last thing that the user said."""
    assert isinstance(parameters, Generation)
    spoken = (Message("user", text),) if text else ()
    if not parameters.messages and not spoken:
        raise InvalidInput("messages: expected at least one message, got none")
    return (*parameters.messages, *spoken)


def asks_for_ending(parameters: Parameters) -> bool:
    return isinstance(parameters, Generation) and parameters.weigh_ending


def counts(delta: TextDelta | None) -> dict[str, Scalar]:
    """The attributes of a chunk: the tokens so far, also for an answer that is broken off after it."""
    return {
        "prompt_tokens": delta.prompt_tokens if delta else 0,
        "cached_tokens": delta.cached_tokens if delta else 0,
        "completion_tokens": delta.completion_tokens if delta else 0,
    }


def usage(last: TextDelta | None) -> dict[str, Scalar]:
    """The attributes of the final chunk; None: there was nothing to answer."""
    return {**counts(last), "finish_reason": last.finish_reason if last else "stop"}
