"""The calls of this gateway, each run by a task of its own."""

import asyncio
from types import TracebackType
from typing import NamedTuple

from engines import logs
from realtime.context import AppContext
from realtime.errors import Refusal, shown
from realtime.openai_realtime.session_config import WireSession
from realtime.webrtc.call import Call, Return
from realtime.webrtc.offer import Offer
from sessions.identity.principal import Principal
from sessions.voice.sessions import new_id


class _Running(NamedTuple):
    call: Call
    task: asyncio.Task[None]
    tenant: str


class Calls:
    """`async with Calls(context)`: leaving ends them all, those that do not end by themselves within the server's `shutdown_s`
    by force."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._calls: dict[str, _Running] = {}

    async def __aenter__(self) -> "Calls":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [running.task for running in self._calls.values()]
        for running in self._calls.values():
            running.call.hang_up()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=self._context.settings.shutdown_s)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)

    async def open(
        self,
        offer: Offer,
        session: WireSession | Return,
        principal: Principal,
        *,
        held: bool = False,
        place: str | None = None,
    ) -> tuple[str, str]:
        """The id of a new call of `principal`, and the SDP answer to `offer`. `place`: in the waiting room. Raises Refusal."""
        call_id = new_id(self._context.call_prefix)
        call = Call(self._context, call_id, offer, session, principal, held=held, place=place)
        task = asyncio.create_task(self._run(call_id, call), name=call_id)
        self._calls[call_id] = _Running(call, task, principal.tenant)
        task.add_done_callback(lambda _: self._calls.pop(call_id))
        return call_id, await call.answer

    def find(self, call_id: str, principal: Principal) -> Call:
        """Raises Refusal (404), also for a call of another tenant."""
        return self._running(call_id, principal).call

    async def hang_up(self, call_id: str, principal: Principal) -> None:
        """Returns when nothing is left of the call, so that its seat is free. Raises Refusal (404)."""
        running = self._running(call_id, principal)
        running.call.hang_up()
        await asyncio.wait({running.task})

    async def _run(self, call_id: str, call: Call) -> None:
        self._context.metrics.calls_active.inc()
        try:
            with logs.about(request=call_id):
                await call.run()
        finally:
            self._context.metrics.calls_active.dec()

    def _running(self, call_id: str, principal: Principal) -> _Running:
        running = self._calls.get(call_id)
        if running is None or not principal.sees(running.tenant):
            message = f"call: expected one that goes on, got {shown(call_id)}"
            raise Refusal(message, status=404, code="call_not_found")
        return running
