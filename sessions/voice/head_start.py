"""An answer begun in a pause, while it is uncertain whether the user has finished.

Nobody reads it until the turn has ended, so the windows of its stages bound what it makes. It is used when the answer that is
then asked for would send the same request, and thrown away when not: a head start never changes what is said, only when.
"""

import asyncio

from engines.parameters import Message
from engines.payloads import Payload
from engines.requests import RequestFailed, RequestStream
from sessions.voice.answer_plan import AnswerPlan
from sessions.voice.state import VoiceState


class HeadStart:
    """Its task holds the request until `drop`, which aborts it when it still runs."""

    def __init__(self, state: VoiceState, plan: AnswerPlan, messages: tuple[Message, ...]) -> None:
        self._state = state
        self._plan = plan
        self._messages = messages
        self._begun: asyncio.Future[RequestStream | None] = asyncio.get_running_loop().create_future()
        self._task = state.spawn(self._hold())

    async def stream(self, plan: AnswerPlan, messages: tuple[Message, ...]) -> RequestStream | None:
        """The request, all its input pushed, when it answers exactly this; None when there is none or another."""
        if (plan, messages) != (self._plan, self._messages):
            self.drop()
            return None
        await asyncio.wait({self._begun, self._task}, return_when=asyncio.FIRST_COMPLETED)
        return self._begun.result() if self._begun.done() else None

    def drop(self) -> None:
        self._task.cancel()

    async def _hold(self) -> None:
        try:
            async with await self._state.graph.submit(self._plan.request(self._state, self._messages)) as stream:
                await stream.push(Payload(), final=True)
                self._begun.set_result(stream)
                await asyncio.get_running_loop().create_future()
        except RequestFailed:
            return  # The answer asks again, and says what is wrong.
