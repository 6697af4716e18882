"""Everything that a new model adds to the tree, thought out before anything is written."""

import keyword
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple

import yaml

from engines.models import registry
from engines.pipeline import ExecutionType
from engines.pipelines.registry import PIPELINES
from engines.scaffold.registration import CannotRegister, with_entry

LONGEST_NAME = 24
"""As long as a worker's may be: engines/launching/worker_settings.py."""
TEMPLATES = Path(__file__).parent / "templates"
KINDS = {ExecutionType.GENERATION: "generation", ExecutionType.AR: "ar", ExecutionType.DIFFUSION: "diffusion"}
NEW_FILES: Mapping[ExecutionType, Mapping[str, str]] = {
    execution: {
        "engines/models/$name.py": f"{kind}_model.txt",
        "engines/conformance/${name}_samples.py": f"{kind}_samples.txt",
        "engines/pipelines/$name.py": f"{kind}_pipeline.txt",
        "deploy/$name.yaml": "deployment.txt",
        "tests/engines/models/test_$name.py": f"{kind}_test.txt",
    }
    for execution, kind in KINDS.items()
}
"""Path → template."""


class CannotWrite(Exception):
    """Why nothing is written, in a sentence."""


class Plan(NamedTuple):
    """Paths count from `root`. `new` and `changed` are whole files."""

    root: Path
    deployment: str
    new: dict[str, str]
    changed: dict[str, str]

    @classmethod
    def make(cls, root: Path, name: str, execution: ExecutionType) -> "Plan":
        """Raises CannotWrite for a name that cannot be one or is taken, and for registries that do not look as they should."""
        _check_name(name)
        words = {"name": name, "Model": "".join(map(str.capitalize, name.split("_"))), "RECORD": name.upper()}
        new = {
            Template(path).substitute(words): Template((TEMPLATES / template).read_text()).substitute(words)
            for path, template in NEW_FILES[execution].items()
        }
        if there := [path for path in new if (root / path).exists()]:
            raise CannotWrite(f"{there[0]} exists already: choose another name, or remove it")
        return cls(root, f"deploy/{name}.yaml", new, _registrations(root, execution, words))

    def write(self) -> Iterator[tuple[str, bool]]:
        """Each path, and whether the file is new."""
        for path, text in self.new.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            with (self.root / path).open("x") as file:
                file.write(text)
            yield path, True
        for path, text in self.changed.items():
            (self.root / path).write_text(text)
            yield path, False


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name) or len(name) > LONGEST_NAME:
        expected = f"a name of at most {LONGEST_NAME} lower-case letters, digits and single underscores, such as my_codec"
        raise CannotWrite(f"name: expected {expected}, got {name!r}")
    if not isinstance(yaml.safe_load(name), str):
        raise CannotWrite(f"name: expected one that YAML reads as a name, got {name!r}, which it reads as {yaml.safe_load(name)}")
    models = (("model", families) for families in (registry.GENERATION, registry.AR, registry.DIFFUSION))
    for what, taken in (*models, ("pipeline", PIPELINES)):
        if name in taken:
            raise CannotWrite(f"name: expected one that no {what} has, got {name!r}")


def _registrations(root: Path, execution: ExecutionType, words: Mapping[str, str]) -> dict[str, str]:
    family = Template((TEMPLATES / "family.txt").read_text()).substitute(words)
    pipeline = Template('    "$name": "engines.pipelines.$name:$RECORD",\n').substitute(words)
    additions = {
        "engines/models/registry.py": (execution.value, family),
        "engines/pipelines/registry.py": ("PIPELINES", pipeline),
    }
    try:
        return {path: with_entry((root / path).read_text(), *addition) for path, addition in additions.items()}
    except CannotRegister as reason:
        raise CannotWrite(str(reason)) from reason
