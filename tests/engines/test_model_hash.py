"""The same pipeline with the same models and weights has the same hash on every node; anything else has another."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from engines.deployment import GraphSettings, StageSettings
from engines.launching.worker_settings import WorkerSettings
from engines.model_hash import model_hash
from engines.weights.cache import folder


def graph(address: str = "", pipeline: str = "voice", **changes: object) -> GraphSettings:
    thinker = StageSettings(model="vllm", weights="smollm2-135m-instruct", options={"max_model_len": 2048, "warm_prompt": "Hi"})
    worker = WorkerSettings(stages=("thinker",), address=address)
    stages = {"thinker": msgspec.structs.replace(thinker, **changes)}
    return GraphSettings(pipeline=pipeline, workers={"mind": worker}, stages=stages, voices={})


def test_how_much_runs_at_once_and_where_does_not_matter() -> None:
    here = graph(weights="", directory=str(folder("smollm2-135m-instruct")), slots=4)
    there = graph(address="tcp://10.0.0.1:7000", options={"warm_prompt": "Hi", "max_model_len": 2048})
    assert model_hash(here) == model_hash(there) == model_hash(graph())


@pytest.mark.parametrize("what", ["pipeline", "model", "weights", "options"])
def test_another_model_is_another(what: str) -> None:
    others: dict[str, Any] = {"pipeline": "world", "model": "mine:Model", "weights": "kokoro", "options": {"max_model_len": 1024}}
    changed = {what: others[what]}
    assert model_hash(graph(**changed)) != model_hash(graph())


def test_weights_of_the_operators_own_count_by_what_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"1")
    mine = graph(weights="", directory=str(tmp_path))
    before = model_hash(mine)
    assert model_hash(graph(weights="", directory=str(tmp_path))) == before
    (tmp_path / "model.bin").write_bytes(b"2")
    assert model_hash(mine) != before


def test_a_model_without_files_has_no_weights_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = model_hash(graph(weights=""))
    (tmp_path / "model.bin").touch()
    assert model_hash(graph(weights="")) == before


def test_of_a_folder_on_another_host_only_the_path_is_known() -> None:
    there = [graph(address="tcp://10.0.0.1:7000", weights="", directory=path) for path in ("/nowhere/1", "/nowhere/2")]
    assert model_hash(there[0]) != model_hash(there[1])
