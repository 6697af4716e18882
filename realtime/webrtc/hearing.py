"""What became of the packets of calls: a record for each, and `/metrics` for all of them."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Hearing(msgspec.Struct, kw_only=True):
    """Packets, seconds of sound, and the present state of the network as the server sees it."""

    received: int = 0
    lost: int = 0
    """Did not come in time."""
    late: int = 0
    """Those of them that came after all."""
    duplicates: int = 0
    recovered_s: float = 0.0
    """Lost, and taken from the copy in the next packet."""
    concealed_s: float = 0.0
    """Lost and guessed at."""
    silent_s: float = 0.0
    """Filled with silence: pauses that were not sent, stalls, and losses too long to guess at."""
    jitter_ms: float = 0.0
    """By how much packets come later than the quickest do: 60 at most, as nothing is waited for longer."""
    delay_ms: float = 0.0
    """How long a hole is waited for."""


_PACKETS = ("received", "lost", "late", "duplicates")
_SECONDS = ("recovered", "concealed", "silent")


class HearingCollector(Collector):
    """Sums up at a scrape, so that no packet costs anything. Of calls that have ended only their sums are kept."""

    def __init__(self) -> None:
        self._ended = Hearing()
        self._live: dict[int, Callable[[], Hearing]] = {}

    @contextmanager
    def of_call(self, hearing: Callable[[], Hearing]) -> Generator[None]:
        place = id(hearing)
        self._live[place] = hearing
        try:
            yield
        finally:
            _add(self._ended, self._live.pop(place)())

    def collect(self) -> Iterator[Metric]:
        live = [hearing() for hearing in self._live.values()]
        total = msgspec.structs.replace(self._ended)
        for hearing in live:
            _add(total, hearing)
        packets = CounterMetricFamily("antiphon_call_packets", "Packets of callers, by what became of them", labels=("outcome",))
        for outcome, count in zip(_PACKETS, (total.received, total.lost, total.late, total.duplicates), strict=True):
            packets.add_metric((outcome,), count)
        filled = CounterMetricFamily("antiphon_call_filled_seconds", "Callers' sound that did not come", labels=("how",))
        for how, seconds in zip(_SECONDS, (total.recovered_s, total.concealed_s, total.silent_s), strict=True):
            filled.add_metric((how,), seconds)
        jitter = GaugeMetricFamily(
            "antiphon_call_jitter_seconds", "Lateness of packets, 60 ms at most, in the worst of the present calls"
        )
        jitter.add_metric((), max((hearing.jitter_ms for hearing in live), default=0.0) / 1000)
        delay = GaugeMetricFamily("antiphon_call_delay_seconds", "Wait for a missing packet, in the worst of the present calls")
        delay.add_metric((), max((hearing.delay_ms for hearing in live), default=0.0) / 1000)
        return iter((packets, filled, jitter, delay))


def _add(total: Hearing, call: Hearing) -> None:
    total.received += call.received
    total.lost += call.lost
    total.late += call.late
    total.duplicates += call.duplicates
    total.recovered_s += call.recovered_s
    total.concealed_s += call.concealed_s
    total.silent_s += call.silent_s
