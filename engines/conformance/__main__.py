"""`python -m engines.conformance STAGE [--config FILE] [--samples MODULE:FUNCTION]`"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in a worker; libraries read it when they are imported

from engines.conformance.command import CannotTest, Subject, results
from engines.conformance.suite import Result

DEFAULT_FILE = Path(__file__).parent.parent.parent / "deploy" / "voice.yaml"


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 when every promise is kept, 1 when one is not, 2 when nothing could be tested."""
    parser = argparse.ArgumentParser(
        prog="python -m engines.conformance", description="Puts the model of a deployment's stage through its contract."
    )
    parser.add_argument("stage", metavar="STAGE", help="as the deployment names it")
    parser.add_argument("--config", metavar="FILE", type=Path, default=DEFAULT_FILE, help="the deployment (default: %(default)s)")
    parser.add_argument("--samples", metavar="MODULE:FUNCTION", help="what to put through it (default: its family's)")
    options = parser.parse_args(arguments)
    try:
        subject = Subject.find(options.config, options.stage, options.samples)
    except CannotTest as reason:
        print(reason, file=sys.stderr)
        return 2
    faults = 0
    for result in results(subject):
        faults += bool(result.fault)
        print(_line(result), flush=True)
    print(f"{subject.stage}: {faults or 'no'} fault{'' if faults == 1 else 's'}")
    return 1 if faults else 0


def _line(result: Result) -> str:
    mark = "✗" if result.fault else "–" if result.skipped else "✓"
    said = result.fault or result.skipped or result.promise
    return f"{mark} {result.check.replace('_', ' '):<40}{result.seconds:>7.2f} s  {said}"


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Not sys.exit: libraries of models complain when the interpreter takes itself apart around them.
    os._exit(status)
