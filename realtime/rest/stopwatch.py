"""The timing that every answer carries: in its body, in the Server-Timing header and in the metrics."""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from aiohttp import web

from engines.requests import RequestStream, StageTiming
from realtime.context import CONTEXT
from realtime.errors import Refusal
from realtime.guard import PRINCIPAL
from realtime.shown_timing import shown_timing
from sessions.usage import REQUESTS, UsageMeter
from sessions.voice.events import AnswerTiming


class Stopwatch:
    """Counts from the moment when the request was there as a whole. `usage`: what the tenant is billed for it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.usage = UsageMeter()
        self._clock = clock
        self._started = clock()
        self._streams: list[RequestStream] = []
        self._first_text_ms: float | None = None
        self._first_audio_ms: float | None = None
        self._transcript_ms: float | None = None
        self._audio_s = 0.0

    def restart(self) -> None:
        self._started = self._clock()

    def follow(self, stream: RequestStream) -> None:
        """The work of this request belongs to the answer."""
        self._streams.append(stream)

    def text(self) -> None:
        if self._first_text_ms is None:
            self._first_text_ms = self._elapsed_ms()

    def audio(self) -> None:
        if self._first_audio_ms is None:
            self._first_audio_ms = self._elapsed_ms()

    def transcript(self) -> None:
        if self._transcript_ms is None:
            self._transcript_ms = self._elapsed_ms()

    def add_audio(self, seconds: float) -> None:
        """Of speech made or, for recognition, heard: what the real-time factor is measured against."""
        self._audio_s += seconds

    def timing(self) -> AnswerTiming:
        """As clients see it."""
        stages = self._stages()
        run_s = sum(stage.run_ms for stage in stages.values()) / 1000
        timing = AnswerTiming(
            transcript_ms=self._transcript_ms,
            ttft_ms=self._first_text_ms,
            ttfa_ms=self._first_audio_ms,
            total_ms=self._elapsed_ms(),
            rtf=run_s / self._audio_s if self._audio_s else None,
            stages=dict(stages),
        )
        return shown_timing(timing)

    def _elapsed_ms(self) -> float:
        return (self._clock() - self._started) * 1000

    def _stages(self) -> Mapping[str, StageTiming]:
        stages: dict[str, StageTiming] = {}
        for stream in self._streams:
            for stage, timing in stream.timing().items():
                stages[stage] = _both(stages[stage], timing) if stage in stages else timing
        return stages


def _both(one: StageTiming, other: StageTiming) -> StageTiming:
    firsts = [timing.first_ms for timing in (one, other) if timing.first_ms is not None]
    return StageTiming(
        first_ms=min(firsts, default=None),
        queue_ms=one.queue_ms + other.queue_ms,
        run_ms=one.run_ms + other.run_ms,
        chunks=one.chunks + other.chunks,
    )


@contextmanager
def measured(request: web.Request, source: str) -> Generator[Stopwatch]:
    """Times what happens inside, counts its outcome (completed, refused, cancelled or failed), and bills what it has used."""
    context = request.app[CONTEXT]
    watch = Stopwatch(context.clock)
    outcome = "failed"
    try:
        yield watch
        outcome = "completed"
        watch.usage.add(REQUESTS, 1)
    except (asyncio.CancelledError, ConnectionError):
        outcome = "cancelled"
        raise
    except Refusal as refusal:
        outcome = "refused" if refusal.status < 500 else "failed"
        raise
    finally:
        context.billing.add(request[PRINCIPAL].tenant, watch.usage.totals)
        context.metrics.answered(source, outcome, watch.timing() if outcome == "completed" else None)


def server_timing(timing: AnswerTiming) -> str:
    """As browsers' developer tools show it: a duration in ms per name."""
    own = {
        "transcript": timing.transcript_ms,
        "ttft": timing.ttft_ms,
        "ttfa": timing.ttfa_ms,
        "total": timing.total_ms,
    }
    entries = [f"{name};dur={value:.1f}" for name, value in own.items() if value is not None]
    entries += [f'{name};dur={stage.run_ms:.1f};desc="queued {stage.queue_ms:.1f} ms"' for name, stage in timing.stages.items()]
    return ", ".join(entries)
