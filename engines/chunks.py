"""The unit of streaming on an edge or to a client."""

import msgspec

from engines.connectors.contents import Content


class ChunkTiming(msgspec.Struct, frozen=True, array_like=True):
    """Where the time of this chunk went inside its stage, in milliseconds."""

    queue_ms: float
    run_ms: float


class Chunk(msgspec.Struct, frozen=True):
    """One piece of a stage's output.

    `seq` counts from 0 per request and stage. `pts` is the media time of the chunk's start in seconds (0 for text).
    `final` marks the last chunk of the stage for this request; its payload may be empty.
    """

    request_id: str
    fence: int
    epoch: int
    stage: str
    seq: int
    kind: str
    content: Content
    pts: float
    final: bool
    timing: ChunkTiming
