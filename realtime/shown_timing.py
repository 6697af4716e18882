"""An answer's timing as clients see it."""

import msgspec

from engines.requests import StageTiming
from sessions.voice.events import AnswerTiming


def shown_timing(timing: AnswerTiming) -> AnswerTiming:
    """Rounded: times to 0.1 ms, the real-time factor to 3 digits after the point."""
    return AnswerTiming(
        decision_ms=_tenths(timing.decision_ms),
        transcript_ms=_tenths(timing.transcript_ms),
        ttft_ms=_tenths(timing.ttft_ms),
        ttfa_ms=_tenths(timing.ttfa_ms),
        total_ms=_tenths(timing.total_ms),
        rtf=None if timing.rtf is None else round(timing.rtf, 3),
        stages={name: _shown_stage(stage) for name, stage in timing.stages.items()},
    )


def _shown_stage(stage: StageTiming) -> StageTiming:
    return msgspec.structs.replace(
        stage, first_ms=_tenths(stage.first_ms), queue_ms=round(stage.queue_ms, 1), run_ms=round(stage.run_ms, 1)
    )


def _tenths(time_ms: float | None) -> float | None:
    return None if time_ms is None else round(time_ms, 1)
