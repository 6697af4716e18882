"""The stores that one contract holds for: in memory, in one Redis, and in the full suite in a Cluster and behind Sentinel."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from fakes.admission_store import TimedAdmission
from fakes.admission_store import in_memory as admission_in_memory
from fakes.admission_store import in_redis as admission_in_redis
from fakes.redis_cluster import RedisCluster, running_cluster
from fakes.redis_sentinel import Watched, running_sentinels
from fakes.redis_server import running_redis
from fakes.session_stores import Stores, in_memory, in_redis

# They take 2 s to form: one for the tests of a file. Their log is read when the file ends.


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RedisCluster]:
    async with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Watched]:
    async with running_sentinels(tmp_path_factory.mktemp("sentinels")) as running:
        yield running


@pytest.fixture
async def on_cluster(cluster: RedisCluster) -> AsyncGenerator[Stores]:
    for number in range(len(cluster.servers)):
        await cluster.ask(number, "FLUSHALL")
    async with in_redis(cluster.url, *cluster.places) as stores:
        yield stores


@pytest.fixture
async def on_sentinels(watched: Watched) -> AsyncGenerator[Stores]:
    await watched.ask(watched.primary, "FLUSHALL")
    async with in_redis(watched.url, ("127.0.0.1", watched.primary.port)) as stores:
        yield stores


@pytest.fixture
async def on_redis(tmp_path: Path) -> AsyncGenerator[Stores]:
    async with running_redis(tmp_path) as server, in_redis(server.url) as stores:
        yield stores


@pytest.fixture
def on_memory() -> Stores:
    return in_memory()


@pytest.fixture(
    params=[
        "on_memory",
        "on_redis",
        pytest.param("on_cluster", marks=pytest.mark.full),
        pytest.param("on_sentinels", marks=pytest.mark.full),
    ]
)
def stores(request: pytest.FixtureRequest) -> Stores:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Stores)
    return found


@pytest.fixture
def admission_on_memory() -> TimedAdmission:
    return admission_in_memory()


@pytest.fixture
async def admission_on_redis(tmp_path: Path) -> AsyncGenerator[TimedAdmission]:
    async with running_redis(tmp_path) as server, admission_in_redis(server.url) as timed:
        await timed.store.census()
        yield timed


@pytest.fixture
async def admission_on_cluster(cluster: RedisCluster) -> AsyncGenerator[TimedAdmission]:
    for number in range(len(cluster.servers)):
        await cluster.ask(number, "FLUSHALL")
    async with admission_in_redis(cluster.url) as timed:
        await timed.store.census()
        yield timed


@pytest.fixture(
    params=["admission_on_memory", "admission_on_redis", pytest.param("admission_on_cluster", marks=pytest.mark.full)]
)
def admission(request: pytest.FixtureRequest) -> TimedAdmission:
    """New, and settled at once."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, TimedAdmission)
    return found
