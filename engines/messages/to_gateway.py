"""Everything an engine worker says to a gateway."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from engines.chunks import Chunk
from engines.messages.to_worker import PROTOCOL
from engines.site import NOWHERE, Site


class StageState(StrEnum):
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class StageStatus(msgspec.Struct, frozen=True):
    """`slots` is how many requests the engine runs at once; `note` says what is loading or what went wrong."""

    stage: str
    state: StageState
    slots: int
    note: str = ""


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """Answer to Hello."""

    worker: str
    pid: int
    stages: tuple[StageStatus, ...]
    protocol: int = PROTOCOL
    site: Site = NOWHERE


class StatusChanged(msgspec.Struct, frozen=True, tag="status"):
    status: StageStatus


class Emit(msgspec.Struct, frozen=True, tag="emit"):
    chunk: Chunk


class Taken(msgspec.Struct, frozen=True, tag="taken"):
    """The engine took `count` inputs that `source` pushed out of the stage's inbox; that source may push that many more."""

    request_id: str
    stage: str
    source: str
    count: int


class ErrorKind(StrEnum):
    INVALID = "invalid"
    """The request's own fault: 4xx at the edge."""
    ENGINE = "engine"
    """The stage raised."""
    OVERLOADED = "overloaded"
    """No slot, no room, or the deadline cannot be met."""
    REPLICA_LOST = "replica_lost"
    """The worker died or was lost."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """This stage has given up on this request; it holds nothing of it any more."""

    request_id: str
    stage: str
    kind: ErrorKind
    message: str


class Aborted(msgspec.Struct, frozen=True, tag="aborted"):
    """Nothing of the request is left in this worker."""

    request_id: str


class StageReport(msgspec.Struct, frozen=True):
    """Counters since start: `steps` model calls, with `rows` in them, `items` inputs worked on, `shed` those given up for lack of
    time, `emitted` chunks. `units` is what the stage counts in (`tokens`, `frames`, `windows`, `utterances`, `pictures`)
    and `produced` how many of them."""

    stage: str
    active: int
    queued: int
    slots: int
    steps: int
    items: int
    emitted: int
    units: str
    produced: int
    step_ms_by_batch: dict[int, float]
    rows: int = 0
    shed: int = 0


class Report(msgspec.Struct, frozen=True, tag="report"):
    """`fault` says what is wrong with the worker's connectors; empty when nothing is."""

    stages: tuple[StageReport, ...]
    rss_bytes: int
    fault: str = ""


ToGateway: TypeAlias = Welcome | StatusChanged | Emit | Taken | Failed | Aborted | Report

decoder = msgspec.msgpack.Decoder(ToGateway)
encoder = msgspec.msgpack.Encoder()
