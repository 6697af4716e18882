"""One response: from the request to the thinker to the last event about it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec

from engines.parameters import Message
from engines.payloads import Payload
from engines.requests import Delivery, RequestFailed, RequestStream, StageTiming
from sessions.usage import TOKENS_IN, TOKENS_OUT
from sessions.voice.answer_plan import AnswerPlan
from sessions.voice.answer_timing import AnswerClock
from sessions.voice.conversation import Conversation
from sessions.voice.events import Response, ResponseCreated, ResponseDone, ResponseStatus, StatusReason, Usage
from sessions.voice.head_start import HeadStart
from sessions.voice.items import Item
from sessions.voice.output_item import OutputItem
from sessions.voice.state import VoiceState
from sessions.voice.stop_scope import StopScope

Prompt: TypeAlias = Callable[[AnswerPlan], Awaitable[tuple[Message, ...]]]
"""Gives the messages to answer to, once every transcript in them is known."""


class Answer:
    """`stop` may come at any time: the engines are told at once, the closing events follow."""

    def __init__(
        self,
        state: VoiceState,
        conversation: Conversation,
        plan: AnswerPlan,
        clock: AnswerClock,
        head_start: HeadStart | None = None,
    ) -> None:
        self.id = state.ids("resp")
        self.begun = asyncio.Event()
        """Its first event is on its way."""
        self.closed = asyncio.Event()
        """Its last event is on its way."""
        self._state = state
        self._plan = plan
        self._clock = clock
        self._head_start = head_start
        self._scope = StopScope()
        self._stream: RequestStream | None = None
        sound = plan.sound_format if plan.spoken else None
        self._item = OutputItem(state, conversation if plan.conversation == "auto" else None, self.id, sound)
        self._usage = Usage()
        self._finish_reason = ""

    @property
    def stopping(self) -> bool:
        return self._scope.reason != ""

    @property
    def spoken(self) -> bool:
        return self._plan.spoken

    @property
    def item(self) -> Item:
        """With what has been written so far."""
        return self._item.so_far()

    def said(self, start_ms: float, end_ms: float) -> str:
        """The words in this stretch of its sound."""
        return self._item.said(start_ms, end_ms)

    def stop(self, reason: StatusReason) -> None:
        self._scope.stop(reason)

    async def run(self, prompt: Prompt, unheard: RequestFailed | None = None) -> None:
        """`unheard`: the question could not be recognised, so the answer fails with this."""
        try:
            await self._state.emit(ResponseCreated(self._response("in_progress")))
            self.begun.set()
            failure = await self._produce(prompt, unheard)
            status, reason = self._outcome(failure)
            # Beside the closing events, not before them: a reader may be slow, and a worker may be slow to acknowledge.
            if self._head_start is not None:
                self._head_start.drop()
            if self._stream is not None:
                self._state.spawn(self._stream.abort())
            await self._item.close("completed" if status == "completed" else "incomplete", stopped=status == "cancelled")
            await self._state.emit(ResponseDone(self._response(status, reason, str(failure or ""))))
        finally:
            self.closed.set()
            if self._head_start is not None:
                self._head_start.drop()
            if self._stream is not None:
                await self._stream.abort()

    async def _produce(self, prompt: Prompt, unheard: RequestFailed | None) -> RequestFailed | None:
        try:
            with self._scope:
                if unheard is not None:
                    return unheard
                if not self.stopping:
                    messages = await prompt(self._plan)
                    stream = self._stream = await self._begun(messages)
                    await self._item.open()
                    async for delivery in stream:
                        await self._deliver(delivery)
        except RequestFailed as failed:
            return failed
        return None

    async def _begun(self, messages: tuple[Message, ...]) -> RequestStream:
        """The request, all its input pushed."""
        begun = await self._head_start.stream(self._plan, messages) if self._head_start is not None else None
        if begun is not None:
            return begun
        stream = self._stream = await self._state.graph.submit(self._plan.request(self._state, messages))
        await stream.push(Payload(), final=True)
        return stream

    async def _deliver(self, delivery: Delivery) -> None:
        payload = delivery.payload
        if delivery.output != "text":
            if "pcm" in payload.arrays:
                if payload.arrays["pcm"].data:
                    self._clock.audio_came()
                await self._item.sound(payload)
            return
        counts = payload.attributes
        if "completion_tokens" in counts:
            before = self._usage
            used = Usage(int(counts["prompt_tokens"]), int(counts["cached_tokens"]), int(counts["completion_tokens"]))
            self._state.usage.add(TOKENS_IN, used.input_tokens - before.input_tokens)
            self._state.usage.add(TOKENS_OUT, used.output_tokens - before.output_tokens)
            self._usage = used
        if "finish_reason" in counts:
            self._finish_reason = str(counts["finish_reason"])
        if payload.text:
            self._clock.text_came()
            await self._item.write(payload.text)

    def _outcome(self, failure: RequestFailed | None) -> tuple[ResponseStatus, StatusReason]:
        if self.stopping:
            return "cancelled", self._scope.reason
        if failure is not None:
            return "failed", "engine_failed"
        if self._finish_reason == "length":
            return "incomplete", "max_output_tokens"
        return "completed", ""

    def _response(self, status: ResponseStatus, reason: StatusReason = "", message: str = "") -> Response:
        over = status != "in_progress"
        stages: Mapping[str, StageTiming] = self._stream.timing() if self._stream is not None else {}
        return Response(
            id=self.id,
            status=status,
            reason=reason,
            message=message,
            modality=self._plan.modality,
            voice=self._plan.voice,
            sound_format=self._plan.sound_format,
            conversation=self._plan.conversation,
            max_output_tokens=self._plan.max_output_tokens,
            output=self._item.output(),
            usage=self._used() if over else None,
            timing=self._clock.timing(stages, self._item.audio_ms) if over else None,
            metadata=self._plan.metadata,
        )

    def _used(self) -> Usage:
        return msgspec.structs.replace(self._usage, input_audio_ms=self._clock.heard_ms, output_audio_ms=self._item.heard_ms)
