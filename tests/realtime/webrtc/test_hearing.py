"""What became of the packets of calls, as `/metrics` shows it."""

from realtime.metrics import Metrics
from realtime.webrtc.hearing import Hearing


def shown(metrics: Metrics) -> dict[str, float]:
    lines = metrics.text({}).decode().splitlines()
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if name.startswith("antiphon_call_")
    }


def test_live_calls_and_ended_ones_add_up() -> None:
    metrics = Metrics()
    one, other = Hearing(received=10, lost=2, recovered_s=0.02, jitter_ms=3), Hearing(received=5, silent_s=1.5, delay_ms=60)
    with metrics.hearing.of_call(lambda: one):
        with metrics.hearing.of_call(lambda: other):
            now = shown(metrics)
            assert now['antiphon_call_packets_total{outcome="received"}'] == 15
            assert (now["antiphon_call_jitter_seconds"], now["antiphon_call_delay_seconds"]) == (0.003, 0.06)
        one.received += 1
        later = shown(metrics)
        assert later['antiphon_call_packets_total{outcome="received"}'] == 16
        assert later["antiphon_call_delay_seconds"] == 0
    ended = shown(metrics)
    assert ended['antiphon_call_packets_total{outcome="received"}'] == 16
    assert ended['antiphon_call_packets_total{outcome="lost"}'] == 2
    assert ended['antiphon_call_filled_seconds_total{how="recovered"}'] == 0.02
    assert ended['antiphon_call_filled_seconds_total{how="silent"}'] == 1.5
    assert ended["antiphon_call_jitter_seconds"] == 0
