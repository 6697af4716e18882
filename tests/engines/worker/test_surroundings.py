"""What a worker is told about itself before its libraries are loaded."""

from pathlib import Path

import pytest

from engines.launching.worker_settings import WorkerSettings
from engines.worker.surroundings import visible_gpus
from fakes.launched import ask, launcher, request


@pytest.mark.parametrize(
    ("device", "ours", "visible"),
    [("cpu", "", ""), ("cpu", "0,1", ""), ("cuda:1", "", "1"), ("cuda:1", "3,5", "5"), ("cuda:0", "GPU-7,GPU-8", "GPU-7")],
)
def test_a_device_is_one_of_those_that_we_may_use(device: str, ours: str, visible: str) -> None:
    assert visible_gpus(device, ours) == visible


async def test_a_worker_sees_its_device_and_is_ended_before_its_gateway_when_memory_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "tests")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    async with launcher(tmp_path)(one=WorkerSettings(stages=("first",), device="cuda:1")) as runtime:
        await runtime.ready.wait()
        assert oom_score_adj(runtime.pid("one")) == 800
        assert await ask(await runtime.submit(request("r", "once")), "environment CUDA_VISIBLE_DEVICES") == ["5", ""]


def oom_score_adj(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())
