"""What tests/run sets up beside the server, on a fake machine."""

from pathlib import Path

import pytest

from fakes.machine import Machine

TEST_PACKAGES = "pip deploy/locks/test.txt"
NO_COTURN = pytest.mark.skipif(
    Path("/usr/bin/turnserver").exists(), reason="this machine has a coturn of its own, which is looked for"
)
NO_NGINX = pytest.mark.skipif(
    Path("/usr/sbin/nginx").exists(), reason="this machine has an nginx of its own, which is looked for"
)
NO_REDIS = pytest.mark.skipif(
    Path("/usr/bin/redis-server").exists(), reason="this machine has a Redis of its own, which is looked for"
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With a browser, a proxy and a Redis."""
    machine = Machine(tmp_path)
    for name in ("chromium", "nginx", "redis-server", "turnserver"):
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


@NO_REDIS
def test_redis_is_unpacked_with_its_libraries(machine: Machine) -> None:
    (machine.commands / "redis-server").unlink()
    machine.command(
        "apt-get",
        '#!/bin/bash\necho "apt-get $*" >>"$CALLS"\n'
        'case $1 in --simulate) echo "Inst liblzf1 (3)"; echo "Inst redis-server (7)" ;; *) touch redis.deb ;; esac\n',
    )
    machine.command(
        "dpkg-deb",
        '#!/bin/bash\nmkdir -p "$3/usr/bin" && touch "$3/usr/bin/redis-server" && chmod +x "$3/usr/bin/redis-server"\n',
    )
    assert machine.set_up_tests()[0] == 0
    assert "apt-get download liblzf1 redis-server" in machine.calls()
    assert machine.set_up_tests()[0] == 0
    assert machine.calls() == ["weights"]


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


@NO_COTURN
def test_coturn_is_unpacked_with_what_it_needs(machine: Machine) -> None:
    (machine.commands / "turnserver").unlink()
    machine.command(
        "apt-get",
        '#!/bin/bash\necho "apt-get $*" >>"$CALLS"\n'
        'case $1 in --simulate) echo "Inst libevent (1)"; echo "Inst coturn (4)";; download) touch coturn_4.deb;; esac\n',
    )
    machine.command(
        "dpkg-deb", '#!/bin/bash\nmkdir -p "$3/usr/bin" && touch "$3/usr/bin/turnserver" && chmod +x "$3/usr/bin/turnserver"\n'
    )
    assert machine.set_up_tests()[0] == 0
    assert "apt-get download libevent coturn" in machine.calls()
    assert machine.set_up_tests()[0] == 0
    assert machine.calls() == ["weights"]


@NO_COTURN
def test_without_coturn_its_tests_are_left_out(machine: Machine) -> None:
    (machine.commands / "turnserver").unlink()
    machine.command("apt-get", "#!/bin/bash\nexit 100\n")
    status, said = machine.set_up_tests()
    assert status == 0
    assert "apt-get knows no coturn: the tests of calls through a TURN server are skipped" in said
