"""All replicas of one stage, and the choice between them."""

from collections import OrderedDict

from engines.graph.worker_link import WorkerLink
from engines.messages.to_gateway import ErrorKind, StageState
from engines.requests import RequestFailed

REMEMBERED_SESSIONS = 4096
"""Sessions whose replica is remembered; the one unused longest is forgotten first."""


class Pool:
    def __init__(self, stage: str) -> None:
        self.stage = stage
        self._active: dict[WorkerLink, int] = {}
        self._homes: OrderedDict[str, WorkerLink] = OrderedDict()

    def add(self, link: WorkerLink) -> None:
        self._active[link] = 0

    def remove(self, link: WorkerLink) -> None:
        self._active.pop(link, None)
        for session_id in [session_id for session_id, home in self._homes.items() if home is link]:
            del self._homes[session_id]

    def take(self, session_id: str) -> WorkerLink:
        """The session's own replica, else the least loaded one; counts the request until `give_back`. Raises RequestFailed.

        A home that is full keeps its sessions; only this request goes elsewhere, where there is room.
        """
        ready = [link for link in self._active if self._is_ready(link)]
        if not ready:
            raise self._nobody()
        best = min(ready, key=self._load)
        home = self._homes.get(session_id)
        if home is None or home not in ready:
            home = best
        if session_id:
            self._remember(session_id, home)
        chosen = best if self._load(home) >= 1.0 > self._load(best) else home
        self._active[chosen] += 1
        chosen.opened()
        return chosen

    def give_back(self, link: WorkerLink) -> None:
        if link in self._active:
            self._active[link] -= 1
            link.ended()

    def is_ready(self) -> bool:
        return any(self._is_ready(link) for link in self._active)

    def active(self) -> int:
        """Requests that hold this stage open."""
        return sum(self._active.values())

    def _load(self, link: WorkerLink) -> float:
        """Share of its slots that this gateway has taken or waits for."""
        return self._active[link] / max(1, link.stages[self.stage].slots)

    def _is_ready(self, link: WorkerLink) -> bool:
        return link.stages[self.stage].state is StageState.READY

    def _remember(self, session_id: str, home: WorkerLink) -> None:
        self._homes[session_id] = home
        self._homes.move_to_end(session_id)
        if len(self._homes) > REMEMBERED_SESSIONS:
            self._homes.popitem(last=False)

    def _nobody(self) -> RequestFailed:
        for link in self._active:
            status = link.stages[self.stage]
            return RequestFailed(ErrorKind.OVERLOADED, self.stage, f"not ready: {status.note or status.state.value}")
        return RequestFailed(ErrorKind.REPLICA_LOST, self.stage, "no worker runs it at the moment; it is being started")
