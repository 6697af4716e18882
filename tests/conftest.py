"""Fixtures for every test."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import settings

from bench.server import Server, running_server

# A busy machine is no failure: each test has the global time-out instead.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The keys of whoever runs the tests are not those of the servers in them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def weights() -> Callable[[str], Path]:
    """The folder of a model's weights, as fetched by the set-up."""
    from engines.weights import directory

    return directory


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server() -> AsyncIterator[Server]:
    """One real server with the real models, for everything that needs one."""
    async with running_server("--log-level", "warning") as running:
        print(f"server ready after {running.ready_s:.1f} s", file=sys.stderr)
        yield running
