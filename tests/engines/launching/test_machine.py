"""What a machine has, read from a file system of the test."""

from pathlib import Path

import pytest

from engines.launching.machine import this_machine

GIB = 1 << 30


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """8 GiB, no control group with a limit, no GPU."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "dev").mkdir()
    write(tmp_path / "proc/meminfo", "MemTotal:        8388608 kB\nMemFree:         1 kB\n")
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_all_memory_that_is_built_in(root: Path) -> None:
    write(root / "sys/fs/cgroup/memory.max", "max\n")
    found = this_machine(root)
    assert (found.memory_bytes, found.gpus) == (8 * GIB, 0)
    assert found.cores >= 1


@pytest.mark.parametrize(
    ("groups", "limits", "expected_gib"),
    [
        ("0::/a/b\n", {"a/memory.max": f"{3 * GIB}\n", "a/b/memory.max": "max\n"}, 3),
        ("0::/not/shown/here\n", {"memory.max": f"{2 * GIB}\n"}, 2),
        ("3:cpuset:/\n4:memory:/box\n0::/\n", {"memory/box/memory.limit_in_bytes": f"{GIB}\n"}, 1),
        ("4:memory:/box\n", {"memory/box/memory.limit_in_bytes": "9223372036854771712\n"}, 8),
    ],
)
def test_the_least_limit_of_a_control_group_counts(root: Path, groups: str, limits: dict[str, str], expected_gib: int) -> None:
    write(root / "proc/self/cgroup", groups)
    for path, limit in limits.items():
        write(root / "sys/fs/cgroup" / path, limit)
    assert this_machine(root).memory_bytes == expected_gib * GIB


@pytest.mark.parametrize(
    ("devices", "allowed", "gpus"),
    [
        (["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"], None, 2),
        (["nvidia3", "nvidiactl"], None, 1),
        (["nvidiactl"], None, 0),
        (["dxg"], None, 1),
        (["nvidia0", "nvidia1", "nvidia2"], "2,0", 2),
        (["nvidia0"], "", 0),
    ],
)
def test_gpus_are_counted_as_far_as_we_may_use_them(
    root: Path, monkeypatch: pytest.MonkeyPatch, devices: list[str], allowed: str | None, gpus: int
) -> None:
    for device in devices:
        (root / "dev" / device).touch()
    if allowed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert this_machine(root).gpus == gpus


def test_this_machine_has_something() -> None:
    assert this_machine().memory_bytes > GIB // 4
