"""What a stage counts about itself since it started."""

from engines.messages.to_gateway import StageReport

NEWEST_SHARE = 0.1
"""Weight of the newest step in the running mean: the last ten steps or so decide."""


class Counters:
    def __init__(self, stage: str, slots: int, units: str) -> None:
        self.items = 0
        self.emitted = 0
        self.produced = 0
        self.rows = 0
        self.shed = 0
        self._stage = stage
        self._slots = slots
        self._units = units
        self._steps = 0
        self._step_ms: dict[int, float] = {}

    def step(self, batch: int, run_ms: float) -> None:
        """One model call for `batch` requests, or rows of them."""
        self._steps += 1
        self.rows += batch
        mean = self._step_ms.get(batch, run_ms)
        self._step_ms[batch] = mean + NEWEST_SHARE * (run_ms - mean)

    def report(self, *, active: int, queued: int) -> StageReport:
        return StageReport(
            stage=self._stage,
            active=active,
            queued=queued,
            slots=self._slots,
            steps=self._steps,
            items=self.items,
            emitted=self.emitted,
            units=self._units,
            produced=self.produced,
            step_ms_by_batch=dict(self._step_ms),
            rows=self.rows,
            shed=self.shed,
        )
