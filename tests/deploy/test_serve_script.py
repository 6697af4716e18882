"""`deploy/serve` on a fake machine: what it does once, what it skips, what it says."""

import os
import subprocess
from pathlib import Path

import pytest

from fakes.machine import ROOT, Machine

PIP, CPU, CUDA = (f"pip deploy/locks/{lock}.txt" for lock in ("pip", "cpu", "cuda"))
WHOLE_SET_UP = ["venv", PIP, CPU, "project", "weights"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("script", ["deploy/serve", "deploy/setup.sh", "tests/run", ".ci/run"])
def test_script_is_well_formed(script: str) -> None:
    subprocess.run(["bash", "-n", ROOT / script], check=True)
    assert script == "deploy/setup.sh" or os.access(ROOT / script, os.X_OK)


def test_first_run_sets_up_and_serves_with_the_options_in_the_callers_folder(machine: Machine) -> None:
    status, said = machine.serve("--port", "9000", "--name", "two words")
    assert status == 0
    assert said.splitlines()[-1] == f"serving in {machine.elsewhere}: serve --port 9000 --name two words"
    assert machine.calls() == WHOLE_SET_UP


def test_second_run_only_looks_at_the_weights(machine: Machine) -> None:
    machine.serve()
    machine.calls()
    assert machine.serve() == (0, f"serving in {machine.elsewhere}: serve\n")
    assert machine.calls() == ["weights"]


def test_changed_lock_is_installed_into_the_same_venv(machine: Machine) -> None:
    machine.serve()
    machine.calls()
    with (machine.project / "deploy" / "locks" / "cpu.txt").open("a") as lock:
        lock.write("another==1.0\n")
    machine.serve()
    assert machine.calls() == [CPU, "weights"]


def test_moved_folder_gets_its_commands_anew(machine: Machine) -> None:
    machine.serve()
    machine.calls()
    machine.project = machine.project.rename(machine.project.with_name("moved"))
    machine.serve()
    assert machine.calls() == ["project", "weights"]


def test_failed_installation_is_said_and_starts_over(machine: Machine) -> None:
    status, said = machine.serve(FAKE_PIP="fail")
    assert status == 1
    assert said.splitlines()[-2:] == [
        "ERROR: no space left",
        "pip could not install; its message is above, the whole of it in .venv/pip.log. Run this again to go on.",
    ]
    machine.calls()
    assert machine.serve()[0] == 0
    assert machine.calls() == WHOLE_SET_UP


def test_interrupted_installation_ends_with_one_sentence_and_starts_over(machine: Machine) -> None:
    status, said = machine.serve(FAKE_PIP="interrupt")
    assert (status, said.splitlines()[-1]) == (130, "stopped; run it again to go on")
    machine.calls()
    assert machine.serve()[0] == 0
    assert machine.calls() == WHOLE_SET_UP


def test_half_made_venv_is_made_anew(machine: Machine) -> None:
    (machine.project / ".venv" / "bin").mkdir(parents=True)
    status, said = machine.serve()
    assert status == 0
    assert "making .venv anew" in said
    assert machine.calls() == WHOLE_SET_UP


def test_two_at_once_install_once(machine: Machine, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    first = machine.start(FAKE_PIP="wait", FAKE_PIPE=str(pipe))
    with pipe.open("w"):  # opens when the pip of the first one reads, and holds it until here is closed
        second = machine.start()
        assert second.stdout is not None
        assert second.stdout.readline() == f"another set-up is running in {machine.project}; waiting for it\n"
    assert [machine.finish(process)[0] for process in (first, second)] == [0, 0]
    assert machine.calls() == [*WHOLE_SET_UP, "weights"]


def test_without_set_up_it_says_what_to_do(machine: Machine) -> None:
    sentence = f"There is no finished set-up in {machine.project}: run deploy/serve once without --no-setup.\n"
    assert machine.serve("--no-setup", "--port", "9000") == (1, sentence)
    assert machine.calls() == []


def test_no_setup_serves_what_is_there(machine: Machine) -> None:
    machine.serve()
    machine.calls()
    assert machine.serve("--port", "9000", "--no-setup")[1].endswith(": serve --port 9000\n")
    assert machine.calls() == []


def test_python_that_is_too_old_is_named(machine: Machine) -> None:
    status, said = machine.serve(FAKE_PYTHON="3.9.2")
    assert status == 1
    assert said.startswith(
        "Antiphon needs Python 3.11 to 3.14, and python3 is Python 3.9.2: install one, or name it, as in PYTHON="
    )
    assert not (machine.project / ".venv").exists()


def test_something_that_is_no_python_is_named(machine: Machine) -> None:
    machine.command("true", "#!/bin/bash\n")
    status, said = machine.serve(PYTHON=str(machine.commands / "true"))
    assert status == 1
    assert said.startswith(f"Antiphon needs Python 3.11 to 3.14, and {machine.commands}/true is no Python: install one, or ")
    assert not (machine.project / ".venv").exists()


def test_of_pip_only_long_downloads_are_told_and_the_rest_is_kept(machine: Machine) -> None:
    lines = machine.serve()[1].splitlines()
    assert "  downloading torch-2.13.0+cpu, 190.2 MB" in lines
    assert not any("yarl" in line or "Collecting" in line for line in lines)
    assert any(line.endswith("Python packages (deploy/locks/cpu.txt, 2.7 GB on disk)") for line in lines)
    assert (machine.project / ".venv" / "pip.log").exists()


def test_help_waits_for_no_set_up(machine: Machine) -> None:
    status, said = machine.serve("--help")
    assert (status, machine.calls()) == (0, [])
    assert said.startswith("The one command: ")
    assert "ANTIPHON_CACHE=" in said
    machine.serve()
    machine.calls()
    assert machine.serve("--help")[1] == f"{said}serving in {machine.elsewhere}: serve --help\n"
    assert machine.calls() == []


def test_newer_python_beside_an_old_python3_is_found(machine: Machine) -> None:
    machine.commands.joinpath("python3").rename(machine.commands / "python3.12")
    machine.command("python3", "#!/bin/bash\nexit 1\n")
    status, said = machine.serve()
    assert (status, said.splitlines()[0]) == (0, "making .venv with Python 3.12.1")
    assert machine.calls() == WHOLE_SET_UP


def test_missing_debian_package_without_root_says_which_command(machine: Machine) -> None:
    (machine.commands / "espeak-ng").unlink()
    machine.command("apt-get", "#!/bin/bash\n")
    machine.command("sudo", "#!/bin/bash\nexit 1\n")
    sentence = "Missing Debian packages. Run this, then try again: sudo apt-get install -y espeak-ng\n"
    assert machine.serve() == (1, sentence)
    assert machine.calls() == []


def test_missing_debian_package_is_installed_by_root_after_an_update(machine: Machine) -> None:
    (machine.commands / "espeak-ng").unlink()
    machine.command("id", "#!/bin/bash\necho 0\n")
    machine.command("apt-get", '#!/bin/bash\necho "apt-get $*" >>"$CALLS"\n[ "$1" = update ] || grep -q update "$CALLS"\n')
    assert machine.serve()[0] == 0
    install = "apt-get install -y -qq --no-install-recommends espeak-ng"
    assert machine.calls() == [install, "apt-get update -qq", install, *WHOLE_SET_UP]


def test_missing_program_on_another_distribution_is_named(machine: Machine) -> None:
    (machine.commands / "espeak-ng").unlink()
    assert machine.serve() == (1, "Missing: espeak-ng. Install it with your system's package manager, then run this again.\n")


def test_nvidia_driver_chooses_the_cuda_packages(machine: Machine) -> None:
    machine.command("nvidia-smi", "#!/bin/bash\n")
    assert machine.serve(ANTIPHON_DEVICE="")[0] == 0
    assert machine.calls() == ["venv", PIP, CUDA, "project", "weights"]


def test_another_device_gets_another_venv(machine: Machine) -> None:
    machine.serve()
    machine.calls()
    assert "making .venv anew" in machine.serve(ANTIPHON_DEVICE="cuda")[1]
    assert machine.calls() == ["venv", PIP, CUDA, "project", "weights"]


def test_unknown_device_is_refused(machine: Machine) -> None:
    assert machine.serve(ANTIPHON_DEVICE="tpu") == (1, "ANTIPHON_DEVICE: expected cpu or cuda, got tpu\n")


def test_other_machine_is_named(machine: Machine) -> None:
    machine.command("uname", "#!/bin/bash\necho Darwin arm64\n")
    status, said = machine.serve()
    assert (status, said.startswith("Antiphon's lock files are for Linux x86_64, and this is Darwin arm64: ")) == (1, True)
