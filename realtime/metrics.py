"""`/metrics`: what the server measures about itself, in Prometheus' text format."""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from engines.messages.to_gateway import Report
from engines.requests import StageTiming
from realtime.admission_metrics import AdmissionMetrics
from realtime.session_metrics import SessionMetrics
from realtime.webrtc.hearing import HearingCollector
from sessions.voice.conversation import Sound
from sessions.voice.events import AnswerTiming

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0)
LAGS_S = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0)
STORE_CALLS_S = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)
RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0, 1.5, 2.0, 5.0)


class _WorkerCollector(Collector):
    """What the workers and their engines count themselves, as of their newest reports."""

    def __init__(self) -> None:
        self.reports: Mapping[str, Report] = {}

    def collect(self) -> Iterator[Metric]:
        of_stage = ("stage", "worker")
        active = GaugeMetricFamily("antiphon_stage_active", "Requests inside a stage", labels=of_stage)
        queued = GaugeMetricFamily("antiphon_stage_queued", "Inputs and requests waiting inside a stage", labels=of_stage)
        slots = GaugeMetricFamily("antiphon_stage_slots", "Requests a stage runs at once", labels=of_stage)
        steps = CounterMetricFamily("antiphon_stage_steps", "Model calls", labels=of_stage)
        rows = CounterMetricFamily("antiphon_stage_rows", "Rows of all model calls", labels=of_stage)
        shed = CounterMetricFamily("antiphon_stage_shed", "Inputs given up for lack of time", labels=of_stage)
        units = (*of_stage, "units")
        produced = CounterMetricFamily("antiphon_stage_produced", "What came out, in the stage's unit", labels=units)
        memory = GaugeMetricFamily("antiphon_worker_resident_bytes", "Memory a worker holds", labels=("worker",))
        faulty = GaugeMetricFamily("antiphon_worker_faulty", "1: its transport of payloads is faulty", labels=("worker",))
        for worker, report in self.reports.items():
            memory.add_metric((worker,), report.rss_bytes)
            faulty.add_metric((worker,), bool(report.fault))
            for stage in report.stages:
                where = (stage.stage, worker)
                active.add_metric(where, stage.active)
                queued.add_metric(where, stage.queued)
                slots.add_metric(where, stage.slots)
                steps.add_metric(where, stage.steps)
                rows.add_metric(where, stage.rows)
                shed.add_metric(where, stage.shed)
                produced.add_metric((*where, stage.units), stage.produced)
        return iter((active, queued, slots, steps, rows, shed, produced, memory, faulty))


class _SoundCollector(Collector):
    """What interruptions cost: sound that was made and that nobody heard."""

    def __init__(self) -> None:
        self.now = Sound()

    def collect(self) -> Iterator[Metric]:
        text = "Sound of answers in realtime sessions that are over: made, and heard as far as that is known"
        seconds = CounterMetricFamily("antiphon_answer_sound_seconds", text, labels=("what",))
        seconds.add_metric(("made",), self.now.made_ms / 1000)
        seconds.add_metric(("heard",), self.now.heard_ms / 1000)
        return iter((seconds,))


class Metrics:
    """A registry of its own, so that two servers in one process do not add up."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._workers = _WorkerCollector()
        self.registry.register(self._workers)
        self.sound = _SoundCollector()
        self.registry.register(self.sound)
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
        self.sessions = SessionMetrics(self.registry)
        self.calls_active = Gauge("antiphon_calls_active", "WebRTC calls that go on", registry=self.registry)
        self.admission = AdmissionMetrics(self.registry)
        self._store_calls = self._seconds("store_call_seconds", "Calls of the session store", ("call",), STORE_CALLS_S)
        self._store_failures = Counter(
            "antiphon_store_failures_total", "Calls that the session store did not answer", ("call",), registry=self.registry
        )
        self.hearing = HearingCollector()
        self.registry.register(self.hearing)
        self.call_connect = self._seconds("call_connect_seconds", "SDP answer to media flowing")
        self.slots_skipped = Counter(
            "antiphon_slots_skipped_total", "20 ms slots of calls in which the loop was too late to send", registry=self.registry
        )
        self.slots_dry = Counter(
            "antiphon_slots_dry_total",
            "20 ms slots inside an answer whose sound was not made yet",
            registry=self.registry,
        )
        self.loop_lag = self._seconds("loop_lag_seconds", "How late the gateway's loop wakes", buckets=LAGS_S)

    def store_called(self, call: str, took_s: float, worked: bool) -> None:
        self._store_calls.labels(call).observe(took_s)
        if not worked:
            self._store_failures.labels(call).inc()

    def answered(self, source: str, outcome: str, timing: AnswerTiming | None) -> None:
        """One answer has ended. `source`: realtime, chat, speech, transcription, images, image_edits. `outcome`: completed,
        cancelled, failed, …"""
        self._requests.labels(source, outcome).inc()
        if timing is None:
            return
        for histogram, value_ms in ((self._ttft, timing.ttft_ms), (self._ttfa, timing.ttfa_ms), (self._total, timing.total_ms)):
            if value_ms is not None:
                histogram.labels(source).observe(value_ms / 1000)
        if timing.rtf is not None:
            self._rtf.labels(source).observe(timing.rtf)
        self._ran(timing.stages)

    def worker_restarted(self, worker: str) -> None:
        self._restarts.labels(worker).inc()

    def text(self, reports: Mapping[str, Report]) -> bytes:
        """Everything, with the workers' own counters as their `reports` have them."""
        self._workers.reports = reports
        return generate_latest(self.registry)

    def _ran(self, stages: Mapping[str, StageTiming]) -> None:
        for name, timing in stages.items():
            if timing.first_ms is not None:
                self._stage_first.labels(name).observe(timing.first_ms / 1000)
            self._stage_queue.labels(name).observe(timing.queue_ms / 1000)
            self._stage_run.labels(name).observe(timing.run_ms / 1000)

    def _seconds(self, name: str, text: str, labels: tuple[str, ...] = (), buckets: tuple[float, ...] = SECONDS) -> Histogram:
        return Histogram(f"antiphon_{name}", text, labels, buckets=buckets, registry=self.registry)
