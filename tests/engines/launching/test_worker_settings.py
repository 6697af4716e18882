"""What the operator gives each worker, and whether the machine has it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from engines.configuration import ConfigurationError
from engines.deployment import graph_settings
from engines.launching.machine import Machine
from engines.launching.worker_specs import worker_specs
from engines.logs import LogStyle
from engines.worker.spec import WorkerSpec

FILE = Path("d.yaml")
GIB = 1 << 30
TWO_GPUS = Machine(memory_bytes=16 * GIB, cores=4, gpus=2)
NO_GPU = Machine(memory_bytes=16 * GIB, cores=4, gpus=0)
NOTHING: Mapping[str, object] = {}
STAGES = {
    "ear": {"model": "elsewhere:Model", "directory": "/x", "hang_limit_s": 5},
    "mind": {"model": "elsewhere:Model", "directory": "/x"},
}


def specs(
    machine: Machine = NO_GPU, ears: Mapping[str, object] = NOTHING, minds: Mapping[str, object] = NOTHING, name: str = "minds"
) -> list[WorkerSpec]:
    """Of worker `ears`, which runs `ear`, and of worker `name`, which runs `mind`, each with these settings."""
    workers = {"ears": {"stages": ["ear"], **ears}, name: {"stages": ["mind"], **minds}}
    sections = {"pipeline": "fakes.pipelines:CASCADE", "workers": workers, "stages": STAGES}
    return worker_specs(graph_settings(FILE, sections, machine), LogStyle())


def test_each_worker_is_told_what_it_may_use() -> None:
    ears, minds = specs(TWO_GPUS, {"device": "cuda:1", "memory_gb": 2.5, "ring_mb": 64, "threads": 2}, minds={"device": "cpu"})
    assert (ears.device, ears.memory_gb, ears.ring_mb, ears.threads) == ("cuda:1", 2.5, 64, 2)
    assert (minds.device, minds.memory_gb, minds.ring_mb, minds.threads) == ("cpu", None, 32, 1)
    assert (ears.stages[0].hang_limit_s, minds.stages[0].hang_limit_s) == (5.0, 30.0)


@pytest.mark.parametrize(("machine", "device"), [(NO_GPU, "cpu"), (TWO_GPUS, "cuda:0")])
def test_the_device_that_nobody_chose_is_the_first_gpu_where_there_is_one(machine: Machine, device: str) -> None:
    assert [spec.device for spec in specs(machine)] == [device, device]


@pytest.mark.parametrize(
    ("ears", "message"),
    [
        ({"device": "cuda:2"}, "workers.ears.device: expected one of cpu, cuda:0, cuda:1 (what this machine has), got 'cuda:2'"),
        ({"device": "gpu"}, "workers.ears.device: expected cpu or cuda:N, got 'gpu'"),
        ({"device": "cuda:-1"}, "workers.ears.device: expected cpu or cuda:N, got 'cuda:-1'"),
        ({"memory_gb": 20}, "workers.ears.memory_gb: expected at most 17.18 GB in all workers and rings together"),
        ({"memory_gb": 6, "replicas": 3}, "workers.ears.memory_gb: expected at most 17.18 GB"),
        ({"memory_gb": 17.15}, "got 17.23 GB: ears 17.18, minds 0.03"),
        ({"ring_mb": 17_000}, "workers.ears.ring_mb: expected at most 17.18 GB"),
        ({"memory_gb": 0}, "workers.ears.memory_gb: expected float > 0.0, got 0"),
        ({"memory_gb": -1.5}, "workers.ears.memory_gb: expected float > 0.0, got -1.5"),
        ({"memory_gb": float("nan")}, "workers.ears.memory_gb: expected float > 0.0, got nan"),
        ({"memory_gb": float("inf")}, "workers.ears.memory_gb: expected float <= 1000000.0, got inf"),
        ({"memory_gb": "much"}, "workers.ears.memory_gb: expected float | null, got 'much'"),
        ({"ring_mb": 0}, "workers.ears.ring_mb: expected int >= 1, got 0"),
        ({"threads": 0}, "workers.ears.threads: expected int >= 1, got 0"),
        ({"ring_mb": 65_537}, "workers.ears.ring_mb: expected int <= 65536, got 65537"),
        ({"threads": 10**21}, "workers.ears.threads: expected int <= 1024, got 1000000000000000000000"),
        ({"replicas": 65}, "workers.ears.replicas: expected int <= 64, got 65"),
        ({"replicas": -1}, "workers.ears.replicas: expected int >= 1, got -1"),
        ({"memory": 1}, "workers.ears.memory: expected one of stages, threads, replicas, device, memory_gb, ring_mb"),
    ],
)
def test_what_is_wrong_is_named(ears: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        specs(TWO_GPUS, ears)
    assert str(wrong.value).startswith("d.yaml: ")
    assert message in str(wrong.value)


@pytest.mark.parametrize("name", ["", "a/b", "ä", "x" * 25, "two words"])
def test_a_name_that_is_no_name_of_a_socket_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="expected a name of 1 to 24 letters"):
        specs(name=name)


def test_two_processes_never_get_one_name() -> None:
    with pytest.raises(ConfigurationError, match=r"workers.ears-2: expected another name than a replica of 'ears' has"):
        specs(NO_GPU, {"replicas": 2}, name="ears-2")


def test_more_threads_than_cores_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    specs(NO_GPU, {"threads": 5})
    assert "workers.ears.threads: 5, and this machine has 4 cores" in caplog.text
