"""What a session's state was made by: another hash, another state."""

import hashlib
from pathlib import Path

import msgspec

from engines.deployment import GraphSettings, StageSettings
from engines.weights.cache import digest
from engines.weights.likeness import likeness
from engines.weights.manifest import entry


def model_hash(settings: GraphSettings) -> str:
    """Hex, of the pipeline's name and of each of its stages the model, its options and its weights: the same on all nodes that
    run the same. `settings` with weights. Of a folder on another host only its path is known. Reads at most 64 KiB of a file,
    none of those that Antiphon has fetched. Raises WeightsError."""
    elsewhere = settings.run_elsewhere()
    stages = {name: _made_by(stage, name in elsewhere) for name, stage in settings.stages.items()}
    return hashlib.sha256(msgspec.json.encode((settings.pipeline, stages), order="deterministic")).hexdigest()


def _made_by(stage: StageSettings, is_elsewhere: bool) -> tuple[str, object, str]:
    return stage.model, stage.options, _weights(stage, is_elsewhere)


def _weights(stage: StageSettings, is_elsewhere: bool) -> str:
    """Empty: a model without files."""
    if stage.weights:
        return digest(entry(stage.weights))
    return stage.directory if is_elsewhere or not stage.directory else likeness(Path(stage.directory))
