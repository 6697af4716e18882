"""Pipelines whose records contradict themselves."""

import msgspec

from engines.pipeline import Edge, Output
from fakes.pipelines import CASCADE, Unchanged

CYCLE = msgspec.structs.replace(CASCADE, edges=(*CASCADE.edges, Edge("mouth", "ear", Unchanged)))
TWO_OUTPUTS_OF_ONE_NAME = msgspec.structs.replace(CASCADE, outputs=(*CASCADE.outputs, Output("text", "mouth")))
EDGE_TO_NOWHERE = msgspec.structs.replace(CASCADE, edges=(*CASCADE.edges, Edge("mouth", "nose", Unchanged)))
OUTPUT_OF_NOTHING = msgspec.structs.replace(CASCADE, outputs=(*CASCADE.outputs, Output("smell", "nose")))
