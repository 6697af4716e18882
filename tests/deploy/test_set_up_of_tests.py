"""What tests/run sets up beside the server, on a fake machine."""

from pathlib import Path

import pytest

from fakes.machine import Machine

TEST_PACKAGES = "pip deploy/locks/test.txt"
NO_NGINX = pytest.mark.skipif(
    Path("/usr/sbin/nginx").exists(), reason="this machine has an nginx of its own, which is looked for"
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With a browser and a proxy."""
    machine = Machine(tmp_path)
    for name in ("chromium", "nginx"):
        machine.command(name, "#!/bin/bash\n")
    return machine


def test_what_is_there_is_not_installed_again(machine: Machine) -> None:
    assert machine.set_up_tests()[0] == 0
    assert machine.calls()[-1] == TEST_PACKAGES
    assert machine.set_up_tests()[0] == 0
    assert machine.calls() == ["weights"]


def test_another_chromium_will_do(machine: Machine) -> None:
    (machine.commands / "chromium").rename(machine.commands / "google-chrome")
    assert machine.set_up_tests()[0] == 0


def test_a_missing_chromium_is_named_to_who_may_not_install_it(machine: Machine) -> None:
    (machine.commands / "chromium").unlink()
    machine.command("apt-get", "#!/bin/bash\n")
    machine.command("sudo", "#!/bin/bash\nexit 1\n")
    status, said = machine.set_up_tests()
    assert (status, said.splitlines()[-1]) == (
        1,
        "Missing Debian packages. Run this, then try again: sudo apt-get install -y chromium",
    )


@NO_NGINX
def test_nginx_is_unpacked_and_not_installed(machine: Machine) -> None:
    (machine.commands / "nginx").unlink()
    machine.command("apt-get", '#!/bin/bash\necho "apt-get $*" >>"$CALLS"\ntouch nginx_1.deb\n')
    machine.command(
        "dpkg-deb", '#!/bin/bash\nmkdir -p "$3/usr/sbin" && touch "$3/usr/sbin/nginx" && chmod +x "$3/usr/sbin/nginx"\n'
    )
    assert machine.set_up_tests()[0] == 0
    assert machine.calls()[-2:] == ["apt-get download nginx", TEST_PACKAGES]
    assert machine.set_up_tests()[0] == 0
    assert machine.calls() == ["weights"]
    assert [path.name for path in (machine.project / ".venv").glob("nginx*")] == ["nginx"]


@NO_NGINX
def test_nginx_that_cannot_be_fetched_is_named(machine: Machine) -> None:
    (machine.commands / "nginx").unlink()
    machine.command("apt-get", "#!/bin/bash\nexit 100\n")
    machine.command("sudo", "#!/bin/bash\nexit 1\n")
    status, said = machine.set_up_tests()
    assert (status, said.splitlines()[-1]) == (
        1,
        "Missing Debian packages. Run this, then try again: sudo apt-get install -y nginx",
    )
