"""Workers that one process of a host starts, and that other gateways of it use."""

import os
import signal
from pathlib import Path

import pytest

from engines.launching.liveness import Patience
from engines.launching.sharing import sharing
from engines.launching.supervision import Backoff
from engines.launching.worker_settings import WorkerSettings
from fakes.launched import AT_ONCE, Watched, ask, request, settings

SOON = Backoff(first_s=0.02, limit_s=0.02, patience=1_000)


def test_each_replica_becomes_a_worker_with_an_address(tmp_path: Path) -> None:
    own = settings(tmp_path, WorkerSettings(stages=("first",), replicas=2))
    shared = sharing(own, {"one-1": "/run/one-1.sock", "one-2": "/run/one-2.sock", "two": "/run/two.sock"})
    assert {name: (worker.address, worker.replicas) for name, worker in shared.workers.items()} == {
        "one-1": ("unix:/run/one-1.sock", 1),
        "one-2": ("unix:/run/one-2.sock", 1),
        "two": ("unix:/run/two.sock", 1),
    }
    assert shared.run_elsewhere() == {"first", "second"}


def test_workers_that_somebody_else_runs_stay_there(tmp_path: Path) -> None:
    own = settings(tmp_path, WorkerSettings(stages=("first",), address="tcp://127.0.0.1:7000"))
    assert sharing(own, {"two": "/run/two.sock"}).workers["one"] == own.workers["one"]


async def test_two_gateways_use_the_workers_of_a_third_and_find_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "tests")
    owner = Watched(settings(tmp_path), AT_ONCE, Patience(), shares_workers=True)
    async with owner.running():
        graph = await owner.shared()
        a, b = (Watched(graph, SOON, Patience()) for _ in range(2))
        async with b.running():
            async with a.running():
                for gateway in (a, b):
                    await gateway.until(lambda runtime: runtime.ready.is_set())
                    assert await ask(await gateway.submit(request("r1")), "x") == ["x", ""]
            assert await ask(await b.submit(request("r2")), "y") == ["y", ""]  # the one that left took nothing with it
            os.kill(owner.pid("one"), signal.SIGKILL)
            await b.until(lambda runtime: not runtime.ready.is_set())
            await b.until(lambda runtime: runtime.ready.is_set())
            assert await ask(await b.submit(request("r3")), "z") == ["z", ""]
