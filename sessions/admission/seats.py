"""What a session of a kind costs, and what this node and its host have: the vectors that admission compares."""

from collections.abc import Callable, Iterable, Mapping

from engines.messages.to_gateway import StageState, StageStatus
from sessions.admission.node import NodeIdentity
from sessions.admission.settings import AdmissionSettings, CalibratedSeats
from sessions.store.records import Resources

REQUEST = "request"
"""The kind of what is answered once, over REST."""
VOICE = "voice"
RESIDENT_STAGES: Mapping[str, tuple[str, ...]] = {VOICE: ("vad",)}
"""By kind: the stages in which a session has a slot for as long as it lives."""
WHOLE_LOAD = 1_000_000
"""The load of a host, in millionths: whole numbers, whose sum is exact."""
MB = 1 << 20


def granted_slots(stages: Iterable[StageStatus]) -> Mapping[str, int]:
    """Of all replicas that are ready, by stage."""
    slots: dict[str, int] = {}
    for status in stages:
        if status.state is StageState.READY:
            slots[status.stage] = slots.get(status.stage, 0) + status.slots
    return slots


class Seats:
    """`granted` tells the slots that the workers grant now, by stage; `state_mb` the most that a session of a kind holds in the
    memory of its node."""

    def __init__(
        self,
        identity: NodeIdentity,
        settings: AdmissionSettings,
        maximum_sessions: int,
        calibrated: Mapping[str, CalibratedSeats],
        granted: Callable[[], Mapping[str, int]],
        state_mb: Mapping[str, float],
    ) -> None:
        self._node = f"node:{identity.node}:"
        self._host = f"host:{identity.host}:"
        self._settings = settings
        self._maximum_sessions = maximum_sessions
        self.calibrated = calibrated
        self._granted = granted
        self._state_mb = state_mb
        self._slots: dict[str, int] = {}

    def capacity(self) -> Resources:
        """A stage that is being started again has what it had: its sessions wait for it."""
        self._slots.update(self._granted())
        resident = {stage for stages in RESIDENT_STAGES.values() for stage in stages}
        return {
            self._node + "sessions": self._maximum_sessions,
            self._node + "requests": self._settings.requests,
            self._node + "state_mb": self._settings.state_mb,
            self._host + "load": WHOLE_LOAD,
            **{self._host + stage: slots for stage, slots in self._slots.items() if stage in resident},
        }

    def reserve(self) -> Resources:
        """What only those who come back may have."""
        reserved = min(self._settings.reserved_seats, self._maximum_sessions - 1)
        return {self._node + "sessions": reserved} if reserved else {}

    def cost(self, kind: str) -> Resources:
        """Without a calibration a session weighs nothing on the host: the node's limit alone holds."""
        if kind == REQUEST:
            return {self._node + "requests": 1}
        cost: dict[str, float] = {self._node + "sessions": 1}
        if kind in self._state_mb:
            cost[self._node + "state_mb"] = self._state_mb[kind]
        if kind in self.calibrated:
            cost[self._host + "load"] = WHOLE_LOAD // self.calibrated[kind].seats
        cost |= {self._host + stage: 1 for stage in RESIDENT_STAGES.get(kind, ()) if stage in self._slots}
        return cost
