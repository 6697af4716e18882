"""Which record stands behind a deployment's `pipeline:` key."""

from engines.named_object import imported
from engines.pipeline import Pipeline, PipelineError

PIPELINES: dict[str, str] = {
    "voice": "engines.pipelines.voice:VOICE",
    "images": "engines.pipelines.pictures:IMAGES",
    "videos": "engines.pipelines.pictures:VIDEOS",
}


def pipeline(name: str) -> Pipeline:
    """`name` is a key of PIPELINES, or `module:RECORD` of a pipeline that lives elsewhere.

    Raises PipelineError for an unknown name and for a record that contradicts itself.
    """
    reference = PIPELINES.get(name, name)
    if ":" not in reference:
        raise PipelineError(f"pipeline: expected one of {', '.join(PIPELINES)}, or `module:RECORD`, got {name!r}")
    try:
        record = imported(reference)
    except ValueError as absent:
        raise PipelineError(f"pipeline: {absent}") from absent
    if not isinstance(record, Pipeline):
        raise PipelineError(f"pipeline {name!r}: expected a Pipeline, got {type(record).__name__}")
    record.check()
    return record
