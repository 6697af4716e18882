"""Everything a gateway says to an engine worker."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from engines.connectors.contents import Content
from engines.parameters import Parameters

PROTOCOL = 2

PUSH_WINDOW = 32
"""How many pushes of one request from one source may wait in a stage's inbox before the sender must see a Taken."""


class ServiceClass(StrEnum):
    """Whose deadlines come first when an engine has to choose."""

    CONTROL = "control"
    INTERACTIVE = "interactive"
    BATCH = "batch"


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """First message on a connection. `server` names the gateway's instance; the connection is its namespace."""

    server: str
    protocol: int = PROTOCOL


class Submit(msgspec.Struct, frozen=True, tag="submit"):
    """Open one stage for one request, before its inputs exist (prewarm).

    `upstreams` are the stages that feed it (none: the caller does), which selects the bridges. `connector` is what it puts its
    payloads with. `window` and `window_bytes` are how many chunks, and bytes of their arrays, the stage may have emitted beyond
    what was granted; the chunk that crosses the second is still sent. `wait_ms` is how long the request may wait for a slot.
    """

    request_id: str
    pipeline: str
    stage: str
    upstreams: tuple[str, ...]
    fence: int
    epoch: int
    session_id: str
    service_class: ServiceClass
    parameters: Parameters
    window: int
    window_bytes: int
    wait_ms: float
    connector: str = "inline"
    deadline_ms: float | None = None


class Push(msgspec.Struct, frozen=True, tag="push"):
    """Input for an open stage from `source`, one of its upstreams ("": the caller); `final` ends what comes from there and may
    come with an empty payload."""

    request_id: str
    stage: str
    source: str
    content: Content
    final: bool


class Grant(msgspec.Struct, frozen=True, tag="grant"):
    """All readers have taken the oldest `count` chunks not yet granted: the stage may emit that many more, and their payloads may
    be forgotten. Comes after the stage's final chunk, too."""

    request_id: str
    stage: str
    count: int


class Abort(msgspec.Struct, frozen=True, tag="abort"):
    """Stop all stages of this request in this worker and forget their payloads. Answered by Aborted, also when nothing is left to
    stop. `keeps` are stages that have ended, and whose payloads stay until they are granted: their reader is not done."""

    request_id: str
    keeps: tuple[str, ...] = ()


class Probe(msgspec.Struct, frozen=True, tag="probe"):
    """Ask for a Report."""


ToWorker: TypeAlias = Hello | Submit | Push | Grant | Abort | Probe

decoder = msgspec.msgpack.Decoder(ToWorker)
encoder = msgspec.msgpack.Encoder()
