"""Known sentences through a bad network to the recogniser."""

import pytest

from bench.lossy import hearing_through_loss


@pytest.mark.full
@pytest.mark.real_models
@pytest.mark.timeout(180)
async def test_what_is_said_is_understood_without_more_delay() -> None:
    figures = await hearing_through_loss(short=False)
    assert figures["discarded_in_time"] == 0
    assert figures["wer_5pct"] <= 0.2
    assert figures["delay_recovery_ms"] <= 1_000
    assert figures["burst_recovery_ms"] <= 1_000
    assert abs(figures["delay_added_ms"]) <= 20
