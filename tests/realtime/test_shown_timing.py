from engines.requests import StageTiming
from realtime.shown_timing import shown_timing
from sessions.voice.events import AnswerTiming


def test_times_have_one_digit_and_the_factor_three() -> None:
    stages = {"thinker": StageTiming(12.3456, 0.04999, 7.00001, 3), "asr": StageTiming(None, 0.0, 1.25, 0)}
    timing = AnswerTiming(decision_ms=1.049, ttft_ms=2.06, ttfa_ms=None, total_ms=1234.5678, rtf=0.123456, stages=stages)
    assert shown_timing(timing) == AnswerTiming(
        decision_ms=1.0,
        ttft_ms=2.1,
        total_ms=1234.6,
        rtf=0.123,
        stages={"thinker": StageTiming(12.3, 0.0, 7.0, 3), "asr": StageTiming(None, 0.0, 1.2, 0)},
    )
