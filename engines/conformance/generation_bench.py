"""Drives a GENERATION model as its engine does: same keys, same calls, same handling of what it raises."""

from collections import defaultdict
from collections.abc import Hashable
from typing import Any

from engines.conformance import ConformanceFault
from engines.conformance.model_bench import ModelBench, hashable
from engines.models import GenerationModel, Produced
from engines.payloads import Payload
from engines.worker.foreign import attempt
from engines.worker.model_calls import Outcome, flush_and_close, run_batch


class GenerationBench(ModelBench[GenerationModel[Any]]):
    def finish(self, state: object) -> list[Produced]:
        flushed = flush_and_close(self.model, state).outcome
        if isinstance(flushed, Exception):
            raise ConformanceFault(f"flush or close raised {flushed!r}") from flushed
        return flushed

    def break_off(self, state: object, payload: Payload) -> None:
        """A step has no middle."""

    def outcomes(self, rows: list[tuple[object, Payload]]) -> list[Outcome]:
        """Of one step for each key, as the engine groups them; in the order of `rows`."""
        groups: defaultdict[Hashable, list[int]] = defaultdict(list)
        outcomes: dict[int, Outcome] = {}
        for row, (state, payload) in enumerate(rows):
            key = attempt(self.model.batch_key, state, payload)
            if isinstance(key, Exception):
                outcomes[row] = key
            else:
                groups[hashable(key, "batch_key")].append(row)
        for members in groups.values():
            outcomes.update(zip(members, self.step([rows[row] for row in members]), strict=True))
        return [outcomes[row] for row in range(len(rows))]

    def step(self, rows: list[tuple[object, Payload]]) -> list[Outcome]:
        """One call of `run`, and if it raises one for each row."""
        self.largest_step = max(self.largest_step, len(rows))
        return run_batch(self.model, rows).outcomes
