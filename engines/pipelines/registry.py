"""Which record stands behind a deployment's `pipeline:` key."""

from importlib import import_module

from engines.pipeline import Pipeline, PipelineError

PIPELINES: dict[str, str] = {
    "voice": "engines.pipelines.voice:VOICE",
}


def pipeline(name: str) -> Pipeline:
    """Raises PipelineError for an unknown name and for a record that contradicts itself."""
    if name not in PIPELINES:
        raise PipelineError(f"pipeline {name!r} is unknown; there are {', '.join(PIPELINES)}")
    module, _, attribute = PIPELINES[name].partition(":")
    record: Pipeline = getattr(import_module(module), attribute)
    record.check()
    return record
