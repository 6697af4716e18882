"""Deployments: what is checked before anything starts, and what happens without weights."""

import sys
from copy import deepcopy
from pathlib import Path
from typing import cast

import msgspec
import pytest

from engines.configuration import ConfigurationError
from engines.deployment import Chunking, GraphSettings, graph_settings, with_weights
from engines.launching.worker_specs import worker_specs
from engines.logs import LogStyle
from engines.messages.to_worker import ServiceClass
from engines.weights import WeightsError, WeightsMissing
from engines.worker.spec import ScheduleSpec, Shares

FILE = Path("d.yaml")
GOOD: dict[str, dict[str, dict[str, object]]] = {
    "workers": {"ears": {"stages": ["ear"]}, "rest": {"stages": ["mind", "mouth"], "threads": 2}},
    "stages": {
        "ear": {"model": "whisper", "weights": "whisper-tiny-en", "slots": 3},
        "mind": {"model": "vllm", "directory": "/nowhere"},
        "mouth": {"model": "elsewhere:Model", "weights": "kokoro", "when_missing": "skip", "batch": {"max": 2}},
    },
    "voices": {"joe": {"output": "text"}, "heart": {"output": "audio"}},
}


def parsed(change: tuple[str, ...] = (), value: object = None, file: Path = FILE) -> GraphSettings:
    """GOOD with the value at this path changed, or taken out when it is None."""
    sections: dict[str, object] = {"pipeline": "fakes.pipelines:CASCADE", **deepcopy(GOOD)}
    if change:
        here = sections
        for key in change[:-1]:
            here = cast(dict[str, object], here[key])
        if value is None:
            del here[change[-1]]
        else:
            here[change[-1]] = value
    return graph_settings(file, sections)


def counting(**settings: object) -> GraphSettings:
    """A deployment of one DIFFUSION stage."""
    sections: dict[str, object] = {
        "pipeline": "fakes.step_counter:COUNTERS",
        "workers": {"one": {"stages": ["counter"]}},
        "stages": {"counter": {"model": "fakes.step_counter:StepCounter", "directory": ".", **settings}},
    }
    return graph_settings(FILE, sections)


def alone(stage: str, settings: dict[str, object]) -> GraphSettings:
    """A deployment of this one stage."""
    sections = {"pipeline": "fakes.pipelines:CASCADE", "workers": {"one": {"stages": [stage]}}, "stages": {stage: settings}}
    return graph_settings(FILE, sections)


def holding(folder: Path, *files: str) -> Path:
    """`folder` with these files, all empty."""
    for name in files:
        (folder / name).touch()
    return folder


@pytest.fixture(autouse=True)
def a_module_that_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "this_raises.py").write_text("1 / 0")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.fixture(autouse=True)
def no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))


def test_a_good_deployment_becomes_specs_of_workers() -> None:
    settings = parsed()
    ears, rest = worker_specs(settings, LogStyle())
    assert (ears.name, rest.name, rest.threads) == ("ears", "rest", 2)
    assert worker_specs(settings, LogStyle("warning", "json"))[1].logs == LogStyle("warning", "json")
    assert [stage.stage for stage in rest.stages] == ["mind", "mouth"]
    assert (ears.stages[0].slots, rest.stages[1].batch.max) == (3, 2)


def test_replicas_are_workers_of_their_own() -> None:
    settings = parsed(("workers", "ears", "replicas"), 2)
    assert [spec.name for spec in worker_specs(settings, LogStyle())] == ["ears-1", "ears-2", "rest"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("pipeline",), "song", "pipeline: expected one of voice, images, videos, got 'song'"),
        (("pipeline",), None, "pipeline: expected one of voice, images, videos, got None"),
        (("pipeline",), "engines.pipeline:Stage", "expected a Pipeline"),
        (("pipeline",), ".x:y", "pipeline: expected `module:NAME`, got '.x:y'"),
        (("pipeline",), ":y", "pipeline: expected `module:NAME`, got ':y'"),
        (("pipeline",), "x\0:y", "pipeline: expected `module:NAME`, got 'x"),
        (
            ("pipeline",),
            "nowhere.at_all:y",
            "'nowhere.at_all:y' cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
        ),
        (("pipeline",), "fakes.pipelines:NOTHING", "cannot be imported: module fakes.pipelines has no NOTHING"),
        (("pipeline",), "this_raises:ANYTHING", "cannot be imported: ZeroDivisionError: division by zero"),
        (
            ("stages", "nose"),
            {"model": "whisper", "directory": "/x"},
            "stages.nose: expected one of ear, mind, mouth, got 'nose'",
        ),
        (("stages", "ear", "model"), "vllm", "stages.ear.model: expected one of silero_vad"),
        (("stages", "mind", "model"), "whisper", "stages.mind.model: expected one of vllm, got 'whisper'"),
        (("stages", "mind", "model"), ".mine:Model", "stages.mind.model: expected one of vllm, got '.mine:Model'"),
        (("stages", "mind", "model"), "mine:", "stages.mind.model: expected one of vllm, got 'mine:'"),
        (("stages", "mind", "directory"), "a\0b", "stages.mind.directory: expected a path without the character NUL, got 'a"),
        (("stages", "mind", "directory"), "~nosuchuser", "stages.mind.directory: expected the path of a file or folder"),
        (("stages", "mind", "directory"), "\ud800", "stages.mind.directory: expected the path of a file or folder"),
        (("secret_file",), "~nosuchuser/secret", "secret_file: expected the path of a file or folder, under a home that exists"),
        (("stages", "ear", "weights"), "whisper-huge", "stages.ear.weights: expected one of silero-vad"),
        (("stages", "ear", "weights"), None, "stages.ear.weights: expected either weights or directory, got neither"),
        (("stages", "ear", "directory"), "/x", "stages.ear.weights: expected either weights or directory, got both"),
        (("pipeline",), "fakes.broken_pipelines:CYCLE", "pipeline 'cascade' has a cycle through stage 'ear'"),
        (("pipeline",), "fakes.broken_pipelines:TWO_OUTPUTS_OF_ONE_NAME", "names the output 'text' twice"),
        (("pipeline",), "fakes.broken_pipelines:EDGE_TO_NOWHERE", "has no stage 'nose'; it has ear, mind, mouth"),
        (("pipeline",), "fakes.broken_pipelines:OUTPUT_OF_NOTHING", "has no stage 'nose'; it has ear, mind, mouth"),
        (("stages", "ear", "slots"), 0, "stages.ear.slots: expected int >= 1, got 0"),
        (("stages", "ear", "slots"), 65_537, "stages.ear.slots: expected int <= 65536, got 65537"),
        (("stages", "ear", "slots"), 10**21, "stages.ear.slots: expected int <= 65536, got 1000000000000000000000"),
        (("stages", "ear", "batch"), {"max": 10**21}, "stages.ear.batch.max: expected int <= 65536, got 1000000000000000000000"),
        (("stages", "ear", "hang_limit_s"), 0, "stages.ear.hang_limit_s: expected float > 0.0, got 0"),
        (("stages", "ear", "hang_limit_s"), float("nan"), "stages.ear.hang_limit_s: expected float > 0.0, got nan"),
        (("stages", "ear", "batch"), {"max_wait_ms": float("nan")}, "expected a finite max_wait_ms ≥ 0, got nan"),
        (("queue_ms",), {"control": -1}, "queue_ms.control: expected float >= 0.0, got -1"),
        (("queue_ms",), {"batch": float("nan")}, "queue_ms.batch: expected float >= 0.0, got nan"),
        (("queue_ms",), {"urgent": 1}, "queue_ms.urgent: expected one of control, interactive, batch, got an unknown key"),
        (("stages", "ear", "batch"), {"max": 2, "min": 3}, "stages.ear.batch: expected 1 ≤ min ≤ max, got min=3, max=2"),
        (("stages", "ear", "options"), {"threads": [1]}, "stages.ear.options.threads: expected int, got [1]"),
        (
            ("stages", "mind", "options"),
            {"temprature": 3},
            "stages.mind.options.temprature: expected one of max_model_len, kv_cache_mb, dtype, enforce_eager, block_size, ",
        ),
        (("stages", "mind", "options"), {"kv_cache_mb": 0}, "stages.mind.options.kv_cache_mb: expected int >= 1, got 0"),
        (("stages", "mouth", "options"), {"gain": float("nan")}, "stages.mouth.options.gain: expected a finite number, got nan"),
        (
            ("stages", "mouth", "options"),
            {"gains": [{"low": 1.0}, {"high": float("inf")}]},
            "stages.mouth.options.gains[1].high: expected a finite number, got inf",
        ),
        (
            ("stages", "ear", "options"),
            {"compute_type": "int3"},
            "stages.ear.options.compute_type: expected one of auto",
        ),
        (("stages", "mouth", "when_missing"), "shrug", "stages.mouth.when_missing: expected one of refuse, skip, got 'shrug'"),
        (("stages",), {}, "stages: expected at least one of ear, mind, mouth, got none"),
        (("stages",), ["ear"], "stages: expected a mapping with names as keys"),
        (("workers", "ears"), None, "stages.ear: expected a worker that runs it"),
        (("workers", "ears", "stages"), ["ear", "mind"], "workers.rest.stages: expected each stage in one worker, got 'mind'"),
        (("workers", "ears", "stages"), [], "workers.ears.stages: expected array of length >= 1, got []"),
        (("workers", "ears", "stages"), ["eer"], "workers.ears.stages: expected one of ear, mind, mouth, got 'eer'"),
        (("edges",), {"ear->mouth": "full"}, "edges.ear->mouth: expected one of ear->mind, mind->mouth, got 'ear->mouth'"),
        (("edges",), {"ear->mind": "whole"}, "edges.ear->mind: expected one of chunked, full, got 'whole'"),
        (("edges",), {"ear->mind": [1]}, "edges.ear->mind: expected one of chunked, full, got [1]"),
        (("edges",), ["ear->mind"], "edges: expected a mapping with names as keys"),
        (("voices", "joe", "output"), "song", "voices.joe.output: expected one of heard, text, audio, got 'song'"),
        (("voices", "joe", "pitch"), 1, "voices.joe.pitch: expected one of output, got an unknown key"),
    ],
)
def test_what_is_wrong_is_named(path: tuple[str, ...], value: object, message: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        parsed(path, value)
    assert str(wrong.value).startswith("d.yaml: ")
    assert message in str(wrong.value)


def test_only_a_diffusion_stage_has_a_schedule_and_its_worker_gets_it() -> None:
    settings = counting(schedule={"policy": "waves", "shares": {"batch": 0.2}, "window_ms": 7}, batch={"max": 4})
    (spec,) = worker_specs(settings, LogStyle())
    shares = Shares(control=0.5, interactive=0.3, batch=0.2)
    assert spec.stages[0].schedule == ScheduleSpec(policy="waves", shares=shares, window_ms=7.0, stable_ms=5.0)
    assert spec.stages[0].batch.max == 4
    assert msgspec.to_builtins(counting())["stages"]["counter"]["schedule"] == {
        "policy": "steps",
        "shares": {"control": 0.5, "interactive": 0.3, "batch": 0.15},
        "window_ms": 20.0,
        "stable_ms": 5.0,
    }
    assert "schedule" not in msgspec.to_builtins(parsed())["stages"]["ear"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedule": {"policy": "fifo"}}, "schedule.policy: expected one of steps, waves, got 'fifo'"),
        (
            {"schedule": {"polcy": "steps"}},
            "schedule.polcy: expected one of policy, shares, window_ms, stable_ms, got an unknown key",
        ),
        (
            {"schedule": {"shares": {"robots": 1}}},
            "schedule.shares.robots: expected one of control, interactive, batch, got an unk",
        ),
        ({"schedule": {"shares": {"batch": 0}}}, "schedule.shares.batch: expected float > 0.0, got 0"),
        ({"schedule": {"shares": {"batch": 0.5}}}, "schedule.shares: expected at most 1 for all classes together, got 1.3"),
        ({"schedule": {"shares": {"batch": float("nan")}}}, "schedule.shares.batch: expected float > 0.0, got nan"),
        ({"schedule": {"window_ms": -1}}, "schedule.window_ms: expected float >= 0.0, got -1"),
        ({"schedule": {"stable_ms": 1e9}}, "schedule.stable_ms: expected float <= 60000.0, got 1000000000.0"),
        ({"schedule": ["steps"]}, "schedule: expected a mapping, got ['steps']"),
        ({"batch": {"min": 2}}, "batch.min: expected none in a DIFFUSION stage, which waits as its `schedule` says, got 2"),
        ({"batch": {"max_wait_ms": 5}}, "batch.max_wait_ms: expected none in a DIFFUSION stage"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        counting(**settings)
    assert f"d.yaml: stages.counter.{message}" in str(wrong.value)


def test_a_schedule_of_another_type_of_stage_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"ear\.schedule: expected only DIFFUSION stages to have one, got it for one"):
        parsed(("stages", "ear", "schedule"), {"policy": "steps"})


def test_edges_are_chunked_unless_the_operator_wants_them_whole() -> None:
    settings = parsed(("edges",), {"mind->mouth": "full"})
    assert settings.edges == {"ear->mind": Chunking.CHUNKED, "mind->mouth": Chunking.FULL}
    assert [spec.full_edges for spec in worker_specs(settings, LogStyle())] == [("mind->mouth",)] * 2


def test_how_long_each_class_may_wait_for_a_slot() -> None:
    by_class = parsed(("queue_ms",), {"interactive": 200}).queue_ms.by_class()
    assert by_class == {ServiceClass.CONTROL: 50.0, ServiceClass.INTERACTIVE: 200.0, ServiceClass.BATCH: 10_000.0}


def test_missing_weights_refuse_with_what_to_do() -> None:
    with pytest.raises(WeightsMissing, match=r"whisper-tiny-en.*deploy/serve"):
        with_weights(parsed())


def test_stages_that_may_be_skipped_leave_with_their_voices(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = parsed(("stages", "ear"), {"model": "whisper", "directory": str(holding(tmp_path, "model.bin", "tokenizer.json"))})
    stages = {name: settings.stages[name] for name in settings.stages}
    found = with_weights(
        GraphSettings(
            pipeline=settings.pipeline,
            workers=settings.workers,
            stages={**stages, "mind": stages["ear"]},
            voices=settings.voices,
        )
    )
    assert list(found.stages) == ["ear", "mind"]
    assert found.workers["rest"].stages == ("mind",)
    assert list(found.voices) == ["joe"]
    assert found.stages["ear"].directory == str(tmp_path)
    assert "stage mouth is left out" in caplog.text
    assert "voice heart is left out" in caplog.text


def test_a_directory_that_is_not_there_is_named() -> None:
    with pytest.raises(WeightsError, match=r"stages.ear.directory: there is no folder /nowhere"):
        with_weights(parsed(("stages", "ear"), {"model": "whisper", "directory": "/nowhere"}))


@pytest.mark.parametrize(
    ("stage", "model", "files", "lacks"),
    [
        ("ear", "whisper", ("model.bin",), "no tokenizer.json"),
        ("ear", "kokoro", ("model.onnx", "vocab.json"), r"no voices/\[ab\]\?_\*.bin"),
        ("mind", "vllm", ("tokenizer.json",), "no config.json"),
        ("mind", "vllm", ("config.json",), "a config.json that cannot be read"),
    ],
)
def test_a_folder_of_something_else_is_refused(
    tmp_path: Path, stage: str, model: str, files: tuple[str, ...], lacks: str
) -> None:
    with pytest.raises(WeightsError, match=rf"stages.{stage}.directory: expected .* the model {model}, and .* has {lacks}"):
        with_weights(alone(stage, {"model": model, "directory": str(holding(tmp_path, *files))}))


def test_whispers_folder_is_no_language_model(tmp_path: Path) -> None:
    holding(tmp_path, "model.bin", "tokenizer.json").joinpath("config.json").write_text('{"lang_ids": [], "suppress_ids": []}')
    with pytest.raises(WeightsError, match=r"has a config.json without architectures"):
        with_weights(alone("mind", {"model": "vllm", "directory": str(tmp_path)}))


def test_a_relative_directory_counts_from_the_deployments_file(tmp_path: Path) -> None:
    settings = parsed(("stages", "mind", "directory"), "../models/mind", tmp_path / "mine" / "d.yaml")
    assert settings.stages["mind"].directory == str(tmp_path / "models" / "mind")


def test_options_come_back_complete() -> None:
    assert parsed(("stages", "ear", "options"), {"threads": 2}).stages["ear"].options == {"compute_type": "int8", "threads": 2}
    assert parsed(("stages", "mouth", "options"), {"any": "thing"}).stages["mouth"].options == {"any": "thing"}
