"""Everything a gateway says to an engine worker."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from engines.connectors.contents import Content
from engines.parameters import Parameters

PROTOCOL = 1

PUSH_WINDOW = 32
"""How many pushes of one request may wait in a stage's inbox before the sender must see a Taken."""


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

    `upstream` names the stage that feeds it ("" when the caller does), which selects the bridge.
    `window` is how many chunks the stage may emit before it must wait for a Grant.
    """

    request_id: str
    pipeline: str
    stage: str
    upstream: str
    fence: int
    epoch: int
    session_id: str
    service_class: ServiceClass
    parameters: Parameters
    window: int
    deadline_ms: float | None = None


class Push(msgspec.Struct, frozen=True, tag="push"):
    """Input for an open stage; `final` ends the stage's input and may come with an empty payload."""

    request_id: str
    stage: str
    content: Content
    final: bool


class Grant(msgspec.Struct, frozen=True, tag="grant"):
    """The gateway has passed on `count` chunks of this stage; it may emit that many more."""

    request_id: str
    stage: str
    count: int


class Abort(msgspec.Struct, frozen=True, tag="abort"):
    """Stop all stages of this request in this worker. Answered by Aborted, also when nothing is left to stop."""

    request_id: str


class Probe(msgspec.Struct, frozen=True, tag="probe"):
    """Ask for a Report."""


ToWorker: TypeAlias = Hello | Submit | Push | Grant | Abort | Probe

decoder = msgspec.msgpack.Decoder(ToWorker)
encoder = msgspec.msgpack.Encoder()
