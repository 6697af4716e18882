"""Which machine this is, in a few words: what is measured here says nothing of another one."""

from pathlib import Path

from engines.launching.machine import this_machine

GB = 10**9


def machine_words(root: Path = Path("/")) -> str:
    machine = this_machine(root)
    gpus = f", GPUs: {machine.gpus}" if machine.gpus else ""
    return f"{machine.cores} × {_processor(root)}, {machine.memory_bytes / GB:.0f} GB{gpus}"


def _processor(root: Path) -> str:
    """Arm's kernels name none."""
    for line in (root / "proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return " ".join(value.split())
    return "processor"
