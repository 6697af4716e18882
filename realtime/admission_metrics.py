"""How admission fares: who was let in, after how long, who was not and why; whether the store still knows this node."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sessions.admission.admission import Admission, NotAdmitted
from sessions.admission.node import Node
from sessions.store.interface import StoreDown
from sessions.store.records import Waiting

WAITS_S = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
STORE_DOWN = "store_down"


class _Asking:
    """Implements sessions.admission_watch.Asking."""

    def __init__(self, queued: Gauge) -> None:
        self.estimate_s: float | None = None
        """As it was told first."""
        self.waits = False
        self._queued = queued

    def told(self, place: Waiting) -> None:
        if not self.waits:
            self.waits = True
            self.estimate_s = place.estimate_s
            self._queued.inc()

    def over(self) -> None:
        if self.waits:
            self._queued.dec()


class AdmissionMetrics:
    """Implements sessions.admission_watch.AdmissionWatch. `kind` is that of a session, or `request` for what is answered once."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._queued = Gauge("antiphon_queued", "Who waits at this node for a seat", ("kind",), registry=registry)
        self._admitted = Counter("antiphon_admitted_total", "Seats given", ("kind",), registry=registry)
        self._refused = Counter("antiphon_refused_total", "Who got no seat, and why", ("kind", "reason"), registry=registry)
        self._wait = Histogram(
            "antiphon_admission_wait_seconds", "From the asking to the seat", ("kind",), buckets=WAITS_S, registry=registry
        )
        self._estimate_error = Histogram(
            "antiphon_wait_estimate_error_seconds",
            "How far the first estimate of the wait was off",
            ("kind",),
            buckets=WAITS_S,
            registry=registry,
        )
        self._renewals = Counter(
            "antiphon_lease_renewals_total",
            "Of the node: renewed; announced, as it was new or had changed, or the store did not know it; failed",
            ("result",),
            registry=registry,
        )

    def follow(self, node: Node, admission: Admission) -> None:
        admission.watch = self
        node.on_renewal(lambda result: self._renewals.labels(result).inc())

    @contextmanager
    def asking(self, kind: str) -> Generator[_Asking]:
        began, asking = self._clock(), _Asking(self._queued.labels(kind))
        try:
            yield asking
        except NotAdmitted as refused:
            self._refused.labels(kind, refused.reason.value).inc()
            raise
        except StoreDown:
            self._refused.labels(kind, STORE_DOWN).inc()
            raise
        else:
            self._let_in(kind, asking, self._clock() - began)
        finally:
            asking.over()

    def _let_in(self, kind: str, asking: _Asking, waited_s: float) -> None:
        self._admitted.labels(kind).inc()
        self._wait.labels(kind).observe(waited_s)
        if asking.estimate_s is not None:
            self._estimate_error.labels(kind).observe(abs(waited_s - asking.estimate_s))
