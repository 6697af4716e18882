"""`/metrics`: what the server measures about itself, in Prometheus' text format."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from engines.requests import StageTiming
from sessions.events import AnswerTiming

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0)
RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0, 1.5, 2.0, 5.0)


class Metrics:
    """A registry of its own, so that two servers in one process do not add up."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._ttft = self._seconds("ttft_seconds", "End of input to first text", ("source",))
        self._ttfa = self._seconds("ttfa_seconds", "End of input to first audio", ("source",))
        self._total = self._seconds("answer_seconds", "End of input to the end of the answer", ("source",))
        self._rtf = Histogram(
            "antiphon_rtf", "Compute time over audio time of an answer", ("source",), buckets=RATIOS, registry=self.registry
        )
        self._stage_first = self._seconds("stage_first_seconds", "Submission to a stage's first chunk", ("stage",))
        self._stage_queue = self._seconds("stage_queue_seconds", "Time a request waited inside a stage", ("stage",))
        self._stage_run = self._seconds("stage_run_seconds", "Time a stage worked on a request", ("stage",))
        self._requests = Counter(
            "antiphon_requests_total", "Requests by source and outcome", ("source", "outcome"), registry=self.registry
        )
        self._restarts = Counter(
            "antiphon_worker_restarts_total", "Workers started again after they died", ("worker",), registry=self.registry
        )
        self.sessions_active = Gauge("antiphon_sessions_active", "Open realtime sessions", registry=self.registry)
        self.loop_lag = self._seconds("loop_lag_seconds", "How late the gateway's loop wakes")

    def answered(self, source: str, outcome: str, timing: AnswerTiming | None) -> None:
        """One answer has ended. `source`: realtime, chat, speech, transcription. `outcome`: completed, cancelled, failed, …"""
        self._requests.labels(source, outcome).inc()
        if timing is None:
            return
        for histogram, value_ms in ((self._ttft, timing.ttft_ms), (self._ttfa, timing.ttfa_ms), (self._total, timing.total_ms)):
            if value_ms is not None:
                histogram.labels(source).observe(value_ms / 1000)
        if timing.rtf is not None:
            self._rtf.labels(source).observe(timing.rtf)
        self._stages(timing.stages)

    def worker_restarted(self, worker: str) -> None:
        self._restarts.labels(worker).inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def _stages(self, stages: Mapping[str, StageTiming]) -> None:
        for name, timing in stages.items():
            if timing.first_ms is not None:
                self._stage_first.labels(name).observe(timing.first_ms / 1000)
            self._stage_queue.labels(name).observe(timing.queue_ms / 1000)
            self._stage_run.labels(name).observe(timing.run_ms / 1000)

    def _seconds(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Histogram:
        return Histogram(f"antiphon_{name}", text, labels, buckets=SECONDS, registry=self.registry)
