"""What the scaffold writes works as it is: it passes lint, types and its own test, in a copy of the tree."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engines.scaffold.__main__ import main
from engines.scaffold.plan import LONGEST_NAME

ROOT = Path(__file__).parents[3]
COPIED = (
    "engines",
    "sessions",
    "realtime",
    "deploy",
    "web",
    "tests/conftest.py",
    "tests/bench",
    "tests/fakes",
    "pyproject.toml",
    "README.md",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Enough of the repository to run its tools in."""
    for name in COPIED:
        source, target = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return tmp_path


def python(tree: Path, *arguments: str) -> str:
    """What it printed, when it succeeded."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=50,
        env=os.environ | {"PYTHONPATH": str(tree)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(180)
def test_what_it_writes_works_as_it_is(tree: Path):
    """One of each execution type side by side: the tools, which take long to start, look at all of it at once."""
    (tree / ".venv").symlink_to(sys.prefix)  # where the tools' configuration looks for it
    names = {"GENERATION": "my_first", "AR": "my_second", "DIFFUSION": "my_third"}
    sources: dict[str, None] = {}
    for execution, name in names.items():
        said = python(tree, "-m", "engines.scaffold", name, "--execution", execution)
        written = [line.split()[-1] for line in said.splitlines() if line.startswith(("wrote", "added"))]
        assert len(written) == 7
        sources |= dict.fromkeys(path for path in written if path.endswith(".py"))
        assert name in python(tree, "-m", "realtime.cli", "config", "--deployment", f"deploy/{name}.yaml")
    python(tree, "-m", "ruff", "check", *sources)
    python(tree, "-m", "ruff", "format", "--check", *sources)
    python(tree, "-m", "basedpyright", *sources)
    tests = [f"tests/engines/models/test_{name}.py" for name in names.values()]
    assert f"{2 * len(names)} passed" in python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)


def files(tree: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in tree.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def test_a_second_time_nothing_is_touched(tree: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["my_first"], tree) == 0
    before = files(tree)
    assert main(["my_first"], tree) == 2
    assert "engines/models/my_first.py exists already: choose another name" in capsys.readouterr().err
    assert files(tree) == before


@pytest.mark.parametrize("name", ["My-First", "1st", "class", "a__b", "_a", "", "../a", "x" * 25, "première"])
def test_a_name_that_cannot_be_one_is_refused_with_an_example(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str):
    assert main(["--", name], tmp_path) == 2
    assert f"such as my_codec, got {name!r}" in capsys.readouterr().err
    assert not files(tmp_path)


@pytest.mark.parametrize("name", ["yes", "no", "on", "off", "true", "false", "null"])
def test_a_name_that_its_own_deployment_could_not_say_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str):
    assert main([name], tmp_path) == 2
    assert f"expected one that YAML reads as a name, got {name!r}, which it reads as" in capsys.readouterr().err
    assert not files(tmp_path)


def test_the_longest_name_and_one_like_yamls_words_can_be_deployed(tree: Path):
    for name in ("x" * LONGEST_NAME, "yesno"):
        assert main([name], tree) == 0
        python(tree, "-m", "realtime.cli", "config", "--deployment", f"deploy/{name}.yaml")


@pytest.mark.parametrize(("name", "what"), [("whisper", "model"), ("vllm", "model"), ("voice", "pipeline")])
def test_a_name_that_is_taken_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, what: str):
    assert main([name], tmp_path) == 2
    assert f"expected one that no {what} has, got {name!r}" in capsys.readouterr().err


def test_a_registry_that_looks_otherwise_is_left_alone(tree: Path, capsys: pytest.CaptureFixture[str]):
    (tree / "engines/models/registry.py").write_text("GENERATION = dict()\n")
    before = files(tree)
    assert main(["my_first"], tree) == 2
    assert "GENERATION: expected a dict literal" in capsys.readouterr().err
    assert files(tree) == before
