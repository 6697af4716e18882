"""A worker with scripted models."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fakes.worker_bench import Bench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench, None]:
    made = Bench(tmp_path)
    yield made
    await made.stop()
