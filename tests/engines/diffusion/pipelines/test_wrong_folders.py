import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engines.models.diffusers_pipeline import DiffusersPipeline
from fakes import tiny_pipelines


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_pipelines.save(tiny_pipelines.stable_diffusion, tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def with_entry(**entries: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        index = folder / "model_index.json"
        index.write_text(json.dumps(json.loads(index.read_text()) | entries))

    return change


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (shutil.rmtree if (folder / name).is_dir() else Path.unlink)(folder / name)


@pytest.mark.parametrize(
    ("break_it", "complaint"),
    [
        (without("unet"), "unet: expected a folder "),
        (without("model_index.json"), "directory: expected a folder with model_index.json"),
        (with_entry(_class_name="NoPipeline"), "_class_name: expected a pipeline of diffusers "),
        (with_entry(_class_name=["mine", "Mine"]), "_class_name: expected a pipeline of diffusers "),
        (with_entry(unet=["mine", "Mine"]), "The directory "),
    ],
)
def test_what_is_wrong_is_named_and_code_in_the_folder_does_not_run(
    folder: Path, break_it: Callable[[Path], None], complaint: str
):
    has_run = folder / "has_run"
    for place in (folder, folder / "unet"):
        (place / "mine.py").write_text(f"open({str(has_run)!r}, 'w')\nclass Mine: ...\n")
    break_it(folder)
    with pytest.raises(ValueError, match=r"expected|contains custom code") as refused:
        DiffusersPipeline.load(folder, {})
    assert str(refused.value).startswith(complaint)
    assert not has_run.exists()


def test_a_lora_that_is_not_there_is_named(whole: Path):
    with pytest.raises(ValueError, match="directory: expected") as refused:
        DiffusersPipeline.load(whole, {"loras": [{"directory": "nowhere"}]})
    expected = "options.loras[0].directory: expected a folder with pytorch_lora_weights.safetensors, got"
    assert str(refused.value) == f"{expected} {whole / 'nowhere'}"
