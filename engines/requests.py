"""One pass through the graph, as its caller sees it."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import msgspec

from engines.chunks import ChunkTiming
from engines.messages.to_gateway import ErrorKind
from engines.messages.to_worker import ServiceClass
from engines.parameters import Parameters
from engines.payloads import Payload


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """`entry` is the stage that the caller feeds; `outputs` are the final outputs wanted, by name.

    `parameters` are by stage; a stage without an entry gets its type's defaults. `fence` and `epoch` ride on every chunk.
    """

    request_id: str
    entry: str
    outputs: tuple[str, ...]
    parameters: Mapping[str, Parameters]
    session_id: str = ""
    fence: int = 0
    epoch: int = 0
    service_class: ServiceClass = ServiceClass.INTERACTIVE
    deadline_ms: float | None = None


class RequestFailed(Exception):
    """The request has ended without its outputs. Once `async with` or `abort` is over, nothing of it is left anywhere."""

    def __init__(self, kind: ErrorKind, stage: str, message: str) -> None:
        super().__init__(f"{stage}: {message}")
        self.kind = kind
        self.stage = stage
        self.message = message


class Delivery(msgspec.Struct, frozen=True):
    """One chunk of a final output."""

    output: str
    stage: str
    seq: int
    payload: Payload
    pts: float
    final: bool
    timing: ChunkTiming


class StageTiming(msgspec.Struct, frozen=True):
    """Milliseconds. `first_ms` is from the request's submission to the stage's first non-empty chunk (None: nothing yet);
    `queue_ms` and `run_ms` are sums over its chunks."""

    first_ms: float | None
    queue_ms: float
    run_ms: float
    chunks: int


class RequestStream(Protocol):
    """A submitted request. Iterate it to its end, or abort it; `async with` aborts what is not finished."""

    @property
    def request(self) -> Request: ...

    async def push(self, payload: Payload, *, final: bool = False) -> None:
        """Feed the entry stage; waits for credit. After the request has ended it does nothing."""
        ...

    def __aiter__(self) -> AsyncIterator[Delivery]:
        """Deliveries of all wanted outputs in order of arrival; ends when every output has drained. Raises RequestFailed."""
        ...

    async def abort(self) -> None:
        """Stop all stages side by side; returns when all have acknowledged or have been given up. Idempotent."""
        ...

    def timing(self) -> Mapping[str, StageTiming]: ...

    async def __aenter__(self) -> "RequestStream": ...

    async def __aexit__(self, *exc: object) -> None: ...


class Graph(Protocol):
    """What sessions and REST see of the runtime."""

    async def submit(self, request: Request) -> RequestStream:
        """Admit the request and open its stages. Raises RequestFailed (invalid, overloaded, replica_lost)."""
        ...

    def offers(self, output: str) -> bool:
        """Whether the deployment runs every stage that this output needs."""
        ...
