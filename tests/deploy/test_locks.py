"""The lock files pin every package, name no index, and hold what the project asks for."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fakes.machine import ROOT

PINNED = ("pip", "cpu", "test", "torch-cuda", "cuda")


def requirements(lock: str) -> dict[str, Requirement]:
    lines = (ROOT / "deploy" / "locks" / f"{lock}.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines if not line.startswith("#")]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def version(requirement: Requirement) -> str:
    return str(requirement.specifier).removeprefix("==")


@pytest.mark.parametrize("lock", PINNED)
def test_every_line_is_one_exact_version(lock: str) -> None:
    for requirement in requirements(lock).values():
        assert re.fullmatch(r"==[\w.]+", str(requirement.specifier)), requirement
        assert requirement.url is None


def test_no_package_is_pinned_twice() -> None:
    assert not requirements("cpu").keys() & requirements("test").keys()
    for name, requirement in requirements("cuda").items():
        if name != "vllm":
            assert version(requirement) == version(requirements("cpu")[name])


def test_locks_satisfy_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    here = requirements("cpu") | requirements("test")
    for line in project["dependencies"] + project["optional-dependencies"]["test"]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(version(here[canonicalize_name(wanted.name)])), line
