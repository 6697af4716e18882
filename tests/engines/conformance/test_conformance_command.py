"""The suite on a stage of a deployment, with real worker processes."""

import re
from pathlib import Path

import pytest

from engines.conformance.__main__ import main

DEPLOYMENT = """
pipeline: fakes.tally:TALLIES
workers:
  one: {stages: [tally]}
stages:
  tally: {model: "%s", directory: .}
session: {}
"""


@pytest.fixture(autouse=True)
def _fakes_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


def conformance(folder: Path, model: str, *options: str) -> int:
    file = folder / "tallies.yaml"
    file.write_text(DEPLOYMENT % model)
    return main(["tally", "--config", str(file), *(options or ("--samples", "fakes.tally:samples"))])


def test_a_right_model_keeps_every_promise(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert conformance(tmp_path, "fakes.tally:Tally") == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == "tally: no faults"
    assert len(lines) == 26
    assert {line[0] for line in lines} == {"✓"}


@pytest.mark.parametrize(
    ("model", "check", "fault"),
    [
        ("Restless", "a worker serves it", "request 0 again: array sums"),
        ("Lingering", "an abort leaves nothing", "an abort was not acknowledged in time"),
        ("Crashing", "wrong input is the requests fault", "wrong input 0: expected invalid, got engine"),
    ],
)
def test_what_only_a_worker_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, check: str, fault: str):
    assert conformance(tmp_path, f"fakes.broken_tallies:{model}") == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if check in line]
    assert line.startswith("✗")
    assert fault in line


def test_a_model_that_cannot_be_loaded_is_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert conformance(tmp_path, "nowhere:Tally") == 1
    assert "it cannot be loaded: ModuleNotFoundError: No module named 'nowhere'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tally", "--config", "absent.yaml"], "absent.yaml: there is no such file"),
        (["talker"], "tallies.yaml: expected one of its stages tally, got 'talker'"),
        (["tally"], "fakes.tally:Tally is of no family .* name its samples with --samples"),
        (["tally", "--samples", "samples"], "samples: expected `module:NAME`, got 'samples'"),
        (["tally", "--samples", "fakes.tally:nothing"], "samples: 'fakes.tally:nothing' cannot be imported"),
        (["tally", "--samples", ".tally:samples"], "samples: expected `module:NAME`, got '.tally:samples'"),
        (["tally", "--samples", "fakes.tally:__name__"], "expected a function of the stage's options, got str"),
        (["tally", "--samples", "time:monotonic"], "cannot be made of the stage's options: TypeError: .* takes no arguments"),
        (["tally", "--samples", "builtins:float"], "cannot be made of the stage's options: TypeError: "),
        (["tally", "--samples", "fakes.parrots:samples"], "expected GenerationSamples for the stage 'tally', got TextSamples"),
    ],
)
def test_what_cannot_be_tested_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
):
    file = tmp_path / "tallies.yaml"
    file.write_text(DEPLOYMENT % "fakes.tally:Tally")
    assert main(["--config", str(file), *arguments]) == 2
    assert re.search(sentence, capsys.readouterr().err)
