"""The library's other pipelines that run on the networks of one: for edits, where it takes no pictures itself."""

import importlib
import warnings
from typing import Protocol, cast

from engines.diffusion.pipelines.run import Pipeline
from engines.diffusion.pipelines.taken import taken
from engines.worker.foreign import attempt

NEEDS = {"AutoPipelineForImage2Image": frozenset({"image"}), "AutoPipelineForInpainting": frozenset({"image", "mask_image"})}


class Task(Protocol):
    """Which of the library's pipelines does something with the networks of another."""

    def from_pipe(self, pipeline: Pipeline) -> Pipeline:
        """On the very same networks. Raises ValueError when there is none."""
        ...


def editors(pipeline: Pipeline) -> list[Pipeline]:
    """One that paints a given picture anew and one that does so under a mask, as far as `pipeline` takes none and the library has
    them."""
    takes = taken(pipeline)
    if takes.makes_films:
        return []
    missing = [(task, needs) for task, needs in NEEDS.items() if not needs <= takes.names]
    made = [(attempt(_from_pipe, task, pipeline), needs) for task, needs in missing]
    return [editor for editor, needs in made if not isinstance(editor, Exception) and needs <= taken(editor).names]


def _from_pipe(task: str, pipeline: Pipeline) -> Pipeline:
    """Its module imports all pipelines of the library, with what they have to say about themselves, which is not about these."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = importlib.import_module("diffusers.pipelines.auto_pipeline")
        return cast(Task, vars(known)[task]).from_pipe(pipeline)
