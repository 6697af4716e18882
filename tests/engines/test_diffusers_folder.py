"""`diffusers: ./folder` in a deployment."""

import importlib
import inspect
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from engines.configuration import ConfigurationError, read
from engines.deployment import SECTIONS, GraphSettings, graph_settings
from engines.diffusers_folder import makes_films
from engines.launching.machine import Machine
from fakes.machine import ROOT

OF_FILMS = frozenset(("num_frames", "video_length", "num_chunks", "frames", "video", "num_videos_per_prompt"))
BIG = Machine(cores=8, memory_bytes=64 * 10**9, gpus=0)


def folder(where: Path, class_name: object = "FluxPipeline") -> Path:
    made = where / "weights"
    made.mkdir()
    (made / "model_index.json").write_text(json.dumps({"_class_name": class_name}))
    return made


def settings(where: Path, text: str = "diffusers: ./weights") -> GraphSettings:
    file = where / "mine.yaml"
    file.write_text(text)
    return graph_settings(file, read(file, SECTIONS), BIG)


def fault(where: Path, text: str = "diffusers: ./weights") -> str:
    with pytest.raises(ConfigurationError) as wrong:
        settings(where, text)
    return str(wrong.value).removeprefix(f"{where}/mine.yaml: ")


@pytest.mark.parametrize(
    ("class_name", "pipeline"),
    [
        ("StableDiffusionXLPipeline", "images"),
        ("QwenImageEditPipeline", "images"),
        ("Cosmos2TextToImagePipeline", "images"),
        ("WanPipeline", "videos"),
        ("StableVideoDiffusionPipeline", "videos"),
    ],
)
def test_one_line_is_a_whole_deployment(tmp_path: Path, class_name: str, pipeline: str) -> None:
    made = folder(tmp_path, class_name)
    found = settings(tmp_path)
    assert found.pipeline == pipeline
    assert found.stages["painter"].directory == str(made)
    assert set(found.stages) == {stage.name for stage in found.record().stages}
    assert {stage for worker in found.workers.values() for stage in worker.stages} == set(found.stages)
    assert found.workers["darkroom"].device == "cpu"


def test_the_rest_of_a_deployment_may_stand_beside(tmp_path: Path) -> None:
    folder(tmp_path)
    assert settings(tmp_path, "diffusers: ./weights\nqueue_ms: {batch: 5}").queue_ms.batch == 5


@pytest.mark.parametrize("section", ["pipeline: images", "workers: {}", "stages: {}", "edges: {}", "voices: {}"])
def test_what_it_stands_for_may_not(tmp_path: Path, section: str) -> None:
    folder(tmp_path)
    name = section.partition(":")[0]
    assert fault(tmp_path, f"diffusers: ./weights\n{section}").startswith(f"diffusers: expected it without `{name}`")


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    assert fault(tmp_path, "diffusers: 3") == "diffusers: expected the path of a folder in diffusers layout, got 3"
    index = tmp_path / "weights" / "model_index.json"
    assert fault(tmp_path) == (
        "diffusers: expected a folder of this machine in diffusers layout (nothing is downloaded), "
        f"and {index} cannot be read (No such file or directory)"
    )
    folder(tmp_path, 7)
    assert fault(tmp_path) == f"diffusers: expected the name of a pipeline as _class_name in {index}, got 7"
    index.write_text("[")
    assert fault(tmp_path).startswith(f"diffusers: expected a JSON object in {index}, got something else")


def test_the_example_explains_what_its_line_means(tmp_path: Path) -> None:
    example = (ROOT / "deploy" / "images.yaml").read_text()
    explained = example[example.index("# pipeline:") :].partition("\n\n")[0].replace("\n# ", "\n").removeprefix("# ")
    (tmp_path / "deploy").mkdir()
    (tmp_path / "models").mkdir()
    folder(tmp_path / "models").rename(tmp_path / "models" / "pictures")
    line = "diffusers: ../models/pictures"
    assert line in example
    assert settings(tmp_path / "deploy", explained) == settings(tmp_path / "deploy", line)
    assert settings(tmp_path / "deploy", example).queue_ms.batch == 60_000


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
def test_the_librarys_pipelines_are_told_apart() -> None:
    """By what they are asked. One of LTX's only decodes a film that it is given."""
    library = cast(Any, importlib.import_module("diffusers"))
    names = [name for name in dir(library) if name.endswith("Pipeline") and "Modular" not in name]
    asked: dict[str, bool] = {}
    for name in names:
        with suppress(ImportError, RuntimeError, ValueError):
            asked[name] = not OF_FILMS.isdisjoint(inspect.signature(getattr(library, name).__call__).parameters)
    assert len(asked) > 200
    assert [name for name, films in asked.items() if films != makes_films(name)] == ["LTX2VideoDiffusionDecodePipeline"]
