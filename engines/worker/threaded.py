"""What engines share that compute in one thread of their own: who is open, who leaves, and what the thread is busy with."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

from engines.logs import about
from engines.messages.to_gateway import ErrorKind
from engines.models.text import ModelDied
from engines.worker.foreign import attempt, describe
from engines.worker.progress_watch import ProgressWatch
from engines.worker.stage_request import StageRequest

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Seat:
    """A request's place in the engine: the model's state for it, from `open` to `close`.

    `leaving` is set when it is decided that the request ends; `close` may still be to come.
    """

    request: StageRequest
    state: object = None
    opened: bool = False
    leaving: bool = False


S = TypeVar("S", bound=Seat)


class ThreadedEngine(ABC, Generic[S]):
    """One owner task decides, one thread computes; so the model is never called twice at once."""

    def __init__(self, slots: int, thread: ThreadPoolExecutor, clock: Callable[[], float], hang_limit_s: float) -> None:
        """A model of which a call takes longer than `hang_limit_s` is given up."""
        self.slot_freed: Callable[[], None] = lambda: None
        self._slots = slots
        self._thread = thread
        self._clock = clock
        self._seats: dict[StageRequest, S] = {}
        self._entering: deque[S] = deque()
        self._leaving: deque[tuple[S, Callable[[], None]]] = deque()
        self._in_thread: tuple[S, ...] = ()
        self._wake = asyncio.Event()
        self._hang_limit_s = hang_limit_s
        self._watch = ProgressWatch(hang_limit_s)
        self._ending = False

    @abstractmethod
    def _new_seat(self, request: StageRequest) -> S: ...

    @abstractmethod
    def _model_opens(self, seat: S) -> object:
        """In the thread: the state. Raises what the model raises."""
        ...

    @abstractmethod
    def _model_closes(self, seat: S) -> None:
        """In the thread: nothing is left. Raises what the model raises."""
        ...

    @abstractmethod
    async def _step_or_wait(self) -> None:
        """Nobody enters or leaves: decide what comes next and do it, or wait for `_wake`."""
        ...

    async def run(self) -> None:
        """Raises ModelDied in a group when the model hangs, after every open request has been told."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._work())
            group.create_task(self._end_when_hung())

    @property
    def free_slots(self) -> int:
        return 0 if self._ending else self._slots - len(self._seats)

    def submit(self, request: StageRequest) -> None:
        seat = self._seats[request] = self._new_seat(request)
        self._entering.append(seat)
        self._wake.set()

    def changed(self, request: StageRequest) -> None:
        self._wake.set()

    def abort(self, request: StageRequest) -> None:
        request.end()
        if seat := self._seats.get(request):
            self._leave(seat, lambda: None)
            if self._is_apart(seat):
                self._release(seat)

    def fail(self, request: StageRequest, kind: ErrorKind, message: str) -> None:
        if seat := self._seats.get(request):
            self._leave(seat, lambda: request.fail(kind, message))
        else:
            request.fail(kind, message)

    def shutdown(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            if self._leaving:
                await self._close(*self._leaving.popleft())
            elif self._entering:
                await self._open(self._entering.popleft())
            else:
                await self._step_or_wait()

    async def _wait(self, due: float | None) -> None:
        """Until something changes, and no longer than to `due` by the engine's clock."""
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else due - self._clock()):
                await self._wake.wait()

    async def _open(self, seat: S) -> None:
        if seat.leaving:
            return
        state = await self._call((seat,), attempt, self._model_opens, seat)
        if isinstance(state, Exception):
            self._give_up(seat, state)
        else:
            seat.state, seat.opened = state, True

    async def _close(self, seat: S, farewell: Callable[[], None]) -> None:
        if seat.opened:
            seat.opened = False
            error = await self._call((seat,), attempt, self._model_closes, seat)
            if isinstance(error, Exception):
                self._log("closing failed", seat, error)
        self._release(seat)
        farewell()

    def _give_up(self, seat: S, error: Exception) -> None:
        kind, sentence = describe(error)
        if kind is ErrorKind.ENGINE:
            self._log("the model raised", seat, error)
        self.fail(seat.request, kind, sentence)

    def _leave(self, seat: S, farewell: Callable[[], None]) -> None:
        """The farewell is said when the state is closed, or at once while the thread is busy with others."""
        if seat.leaving:
            return
        seat.leaving = True
        self._wake.set()
        if self._is_apart(seat):
            self._part(seat, farewell)
        else:
            self._leaving.append((seat, farewell))

    def _part(self, seat: S, farewell: Callable[[], None]) -> None:
        """At once; its state is closed first thing when the thread is free."""
        self._leaving.append((seat, lambda: None))
        self._release(seat)
        farewell()

    def _is_apart(self, seat: S) -> bool:
        """The thread is busy with other requests. Then one that leaves need not wait for it: nobody's step can reach it."""
        return bool(self._in_thread) and seat not in self._in_thread

    def _release(self, seat: S) -> None:
        if self._seats.pop(seat.request, None) is not None:
            seat.request.closed.set()
            self.slot_freed()

    async def _end_when_hung(self) -> None:
        await self._watch.hung.wait()
        reason = f"the model hangs: nothing has come from it for {self._hang_limit_s:g} s"
        self._ending = True
        for seat in list(self._seats.values()):
            self._release(seat)
            seat.request.fail(ErrorKind.ENGINE, reason)
        raise ModelDied(reason)

    async def _call(self, seats: tuple[S, ...], function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run in the engine's thread, on behalf of `seats`."""
        self._in_thread = seats
        try:
            with self._watch.waiting():
                return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: function(*args, **kwargs))
        finally:
            self._in_thread = ()

    def _log(self, what: str, seat: S, error: Exception) -> None:
        submit = seat.request.submit
        with about(session=submit.session_id, request=submit.request_id):
            log.error("stage %s: %s", submit.stage, what, exc_info=error)
