"""The calls of this gateway, each run by a task of its own."""

import asyncio
from types import TracebackType

from engines import logs
from realtime.context import AppContext
from realtime.errors import Refusal, shown
from realtime.openai_realtime.session_config import WireSession
from realtime.webrtc.call import Call
from realtime.webrtc.offer import Offer
from sessions.voice_sessions import new_id


class Calls:
    """`async with Calls(context)`: leaving ends them all, those that do not end by themselves within the server's `shutdown_s`
    by force."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._calls: dict[str, Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Calls":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        for call in self._calls.values():
            call.hang_up()
        if self._tasks:
            _, stuck = await asyncio.wait(self._tasks, timeout=self._context.settings.shutdown_s)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)

    async def open(self, offer: Offer, config: WireSession) -> tuple[str, str]:
        """The id of a new call, and the SDP answer to `offer`. Raises Refusal."""
        call_id = new_id("rtc")
        call = Call(self._context, call_id, offer, config)
        task = asyncio.create_task(self._run(call_id, call), name=call_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return call_id, await call.answer

    def hang_up(self, call_id: str) -> None:
        """Raises Refusal (404)."""
        call = self._calls.get(call_id)
        if call is None:
            message = f"call: expected one that goes on, got {shown(call_id)}"
            raise Refusal(message, status=404, code="call_not_found")
        call.hang_up()

    async def _run(self, call_id: str, call: Call) -> None:
        self._calls[call_id] = call
        self._context.metrics.calls_active.inc()
        try:
            with logs.about(request=call_id):
                await call.run()
        finally:
            del self._calls[call_id]
            self._context.metrics.calls_active.dec()
