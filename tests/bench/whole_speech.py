"""The pipeline `voice` with its audio chunking off: the decoder gets each clause's frames all at once."""

from msgspec.structs import replace

from engines.bridges.windows import Windows
from engines.pipeline import Edge
from engines.pipelines.voice import VOICE
from engines.schedule import ChunkSchedule


def _whole(edge: Edge) -> Edge:
    return replace(edge, bridge=replace(edge.bridge, schedule=ChunkSchedule.full())) if isinstance(edge.bridge, Windows) else edge


WHOLE_SPEECH = replace(VOICE, edges=tuple(map(_whole, VOICE.edges)))
