"""Which record stands behind a deployment's `pipeline:` key."""

from importlib import import_module

from engines.pipeline import Pipeline, PipelineError

PIPELINES: dict[str, str] = {
    "voice": "engines.pipelines.voice:VOICE",
}


def pipeline(name: str) -> Pipeline:
    """`name` is a key of PIPELINES, or `module:RECORD` of a pipeline that lives elsewhere.

    Raises PipelineError for an unknown name and for a record that contradicts itself.
    """
    module, colon, attribute = PIPELINES.get(name, name).partition(":")
    if not colon:
        raise PipelineError(f"pipeline: expected one of {', '.join(PIPELINES)}, or `module:RECORD`, got {name!r}")
    try:
        record = vars(import_module(module))[attribute]
    except (ImportError, KeyError) as absent:
        raise PipelineError(f"pipeline {name!r} cannot be imported: {absent}") from absent
    if not isinstance(record, Pipeline):
        raise PipelineError(f"pipeline {name!r}: expected a Pipeline, got {type(record).__name__}")
    record.check()
    return record
