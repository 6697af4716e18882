"""The ways into one stage of one request, as its pipeline and its Submit have them."""

from typing import NamedTuple

from engines.messages.to_worker import Submit
from engines.models import InvalidInput
from engines.pipeline import Bridge, Join, Pipeline, PipelineError

CALLER = ""
"""The source of what the caller feeds directly."""


class WaysIn(NamedTuple):
    """`bridges` are by source (None: what comes goes on as it is); `join` merges what they give (None: as it comes)."""

    bridges: dict[str, Bridge | None]
    join: Join | None = None


def ways_in(pipeline: Pipeline, submit: Submit) -> WaysIn:
    """Raises InvalidInput for upstreams that the pipeline does not have, and whatever the makers of bridges and joins raise."""
    stage, upstreams, parameters = pipeline.stage(submit.stage), submit.upstreams, submit.parameters
    if not upstreams:
        return WaysIn({CALLER: stage.intake(parameters) if stage.intake else None})
    if len(set(upstreams)) < len(upstreams):
        raise InvalidInput(f"upstreams: expected each stage once, got {', '.join(upstreams)}")
    try:
        edges = [pipeline.edge(source, stage.name) for source in upstreams]
    except PipelineError as unknown:
        raise InvalidInput(f"upstreams: {unknown}") from unknown
    bridges: dict[str, Bridge | None] = {edge.source: edge.bridge(parameters) for edge in edges}
    return WaysIn(bridges, stage.join(parameters, upstreams) if stage.join else None)
