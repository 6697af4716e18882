"""What a person sees while models load, and when workers come and go. Reasons are in the log."""

from collections.abc import Callable, Iterable

from engines.messages.to_gateway import StageState, StageStatus

STOPPING = "stopping"


def stopping(limit_s: float) -> str:
    """Of a server in the middle of something."""
    return f"{STOPPING}: what has begun may take {limit_s:g} s more; a second Ctrl-C, or SIGTERM, ends it at once"


class Progress:
    """`on_ready` is called once, the first time that every stage is ready."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float], on_ready: Callable[[], None]) -> None:
        self._say = say
        self._clock = clock
        self._on_ready = on_ready
        self._started = clock()
        self._told: dict[str, StageStatus] = {}
        self._was_ready = False
        self._ever_ready = False

    def update(self, statuses: Iterable[StageStatus]) -> None:
        current = {status.stage: status for status in statuses}
        if not self._told:
            self._say(f"loading {', '.join(current)}")
            self._told = current
        for name, status in current.items():
            if _is_news(status, self._told[name]):
                self._told[name] = status
                self._say(f"  {name:<10} {status.state.value}")
        ready = bool(current) and all(status.state is StageState.READY for status in current.values())
        if ready and not self._was_ready:
            self._told_ready()
        self._was_ready = ready

    def _told_ready(self) -> None:
        if self._ever_ready:
            self._say("ready again")
            return
        self._ever_ready = True
        self._say(f"ready after {self._clock() - self._started:.1f} s")
        self._on_ready()


def _is_news(status: StageStatus, told: StageStatus) -> bool:
    """Loading is only when it was ready before: each new try after a failure is like the last one."""
    if status.state is StageState.LOADING:
        return told.state is StageState.READY
    return status.state is not told.state
