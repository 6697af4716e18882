"""What `antiphon worker` is going to run."""

from pathlib import Path

import pytest

from engines.configuration import ConfigurationError
from engines.deployment import graph_settings
from engines.launching.machine import Machine
from engines.launching.standalone import standalone_spec
from engines.logs import LogStyle
from engines.weights import WeightsError
from engines.worker.spec import WorkerSpec

SMALL = Machine(memory_bytes=1 << 30, cores=2, gpus=0)
LARGE = Machine(memory_bytes=64 << 30, cores=16, gpus=2)


def spec(
    folder: Path,
    name: str = "mind",
    listen: str = "",
    *,
    address: str = "",
    secret: bool = True,
    machine: Machine = LARGE,
    more: dict[str, str | float] | None = None,
) -> WorkerSpec:
    """The deployment has a worker `mind` with this address and these other keys, and `ear`, whose weights are nowhere."""
    secret_file = folder / "secret"
    secret_file.write_text("sixteen bytes or more")
    secret_file.chmod(0o600)
    stage = {"model": "fakes.echo_model:Echo", "directory": str(folder)}
    sections: dict[str, object] = {
        "pipeline": "fakes.pipelines:ECHOES",
        "workers": {
            "mind": {"stages": ["first"], **({"address": address} if address else {}), **(more or {})},
            "ear": {"stages": ["second"]},
        },
        "stages": {"first": stage, "second": {**stage, "directory": "/nowhere"}},
        **({"secret_file": "secret"} if secret else {}),
    }
    file = folder / "d.yaml"
    return standalone_spec(file, graph_settings(file, sections, SMALL), name, listen, LogStyle(), machine)


def test_it_listens_at_its_address_and_needs_the_weights_of_its_own_stages_only(tmp_path: Path) -> None:
    made = spec(tmp_path, address="tcp://127.0.0.1:7100")
    assert (made.name, [stage.stage for stage in made.stages]) == ("mind", ["first"])
    assert (made.listen, made.public, made.socket) == ("tcp://127.0.0.1:7100", "tcp://127.0.0.1:7100", "")
    assert (made.secret_file, made.is_supervised) == (str(tmp_path / "secret"), False)
    with pytest.raises(WeightsError, match="nowhere"):
        spec(tmp_path, "ear", "tcp://127.0.0.1:7100")


def test_it_may_listen_elsewhere_than_where_others_reach_it(tmp_path: Path) -> None:
    made = spec(tmp_path, listen="tcp://0.0.0.0:7100", address="tcp://gpu-2:7000")
    assert (made.listen, made.public) == ("tcp://0.0.0.0:7100", "tcp://gpu-2:7000")
    assert spec(tmp_path, listen="unix:/run/w/mind.sock").socket == "/run/w/mind.sock"


def test_the_machine_that_it_must_fit_on_is_its_own(tmp_path: Path) -> None:
    made = spec(tmp_path, address="tcp://gpu-2:7000", more={"memory_gb": 32, "device": "cuda:1"})
    assert (made.device, made.memory_gb) == ("cuda:1", 32)
    with pytest.raises(ConfigurationError, match=r"workers\.mind\.device"):
        spec(tmp_path, address="tcp://gpu-2:7000", more={"device": "cuda:1"}, machine=SMALL)
    with pytest.raises(ConfigurationError, match=r"workers\.mind\.memory_gb"):
        spec(tmp_path, address="tcp://gpu-2:7000", more={"memory_gb": 32}, machine=SMALL)


@pytest.mark.parametrize(
    ("name", "listen", "address", "secret", "message"),
    [
        ("nose", "", "", True, "workers: expected one of mind, ear, got 'nose'"),
        ("mind", "", "", True, "workers.mind.address: expected the address where gateways find it, got none"),
        ("mind", "7100", "", True, "--listen: expected unix:/path or tcp://host:port, got '7100'"),
        ("mind", "tcp://0.0.0.0:7100", "", True, "workers.mind.address: expected the address under which others reach"),
        ("mind", "tcp://10.0.0.5:7100", "", False, "secret_file: expected a file with a secret"),
    ],
)
def test_what_cannot_be_run_names_the_key(
    tmp_path: Path, name: str, listen: str, address: str, secret: bool, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        spec(tmp_path, name, listen, address=address, secret=secret)


@pytest.mark.parametrize(
    ("address", "more", "message"),
    [
        ("gpu-2:7100", {}, "workers.mind.address: expected unix:/path or tcp://host:port, got 'gpu-2:7100'"),
        ("tcp://0.0.0.0:7100", {}, "workers.mind.address: expected a host and a port that can be connected to"),
        ("tcp://gpu-2:0", {}, "workers.mind.address: expected a host and a port that can be connected to"),
        ("tcp://gpu-2:7100", {"replicas": 2}, "workers.mind.replicas: expected 1 for a worker with an address, got 2"),
    ],
)
def test_an_address_that_nobody_can_connect_to_is_refused(
    tmp_path: Path, address: str, more: dict[str, str | float], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        spec(tmp_path, address=address, more=more)
