"""`python -m engines.worker [SPEC]`: one engine worker. Without a file SPEC, the spec is the first line of stdin."""

import os
import sys
from pathlib import Path

import msgspec
from setproctitle import setproctitle

from engines.worker import spec as specs
from engines.worker.lifeline import lead_own_group, watch
from engines.worker.surroundings import settle


def main() -> int:
    try:
        text = Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else sys.stdin.buffer.readline()
        spec = specs.decoder.decode(text)
    except (OSError, msgspec.MsgspecError) as error:
        sys.stderr.write(f"antiphon worker: the spec cannot be read: {error}\n")
        return 2
    if spec.is_supervised:
        lead_own_group()
        watch(sys.stdin.buffer, Path(spec.socket))
    setproctitle(f"antiphon {spec.name}")  # before the environment changes: its place in memory is where the title goes
    settle(spec)  # before anything that reads it is imported
    from engines.worker.process import run

    return run(spec)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # Not sys.exit: it would wait for the engines' threads, and one of them may hang inside a model.
    os._exit(status)
