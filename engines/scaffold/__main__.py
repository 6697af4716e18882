"""`python -m engines.scaffold NAME [--execution GENERATION|AR|DIFFUSION]`"""

import argparse
import sys
from pathlib import Path

from engines.pipeline import ExecutionType
from engines.scaffold.plan import CannotWrite, Plan

ROOT = Path(__file__).parent.parent.parent


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Exit status: 0 when everything is written, 2 when nothing is."""
    parser = argparse.ArgumentParser(
        prog="python -m engines.scaffold",
        description="Writes a small model that works, its samples, its pipeline, its deployment and its test, and registers it.",
    )
    parser.add_argument("name", metavar="NAME", help="of the module, the stage and the pipeline: lower case, such as my_codec")
    parser.add_argument(
        "--execution",
        choices=[execution.value for execution in ExecutionType],
        default=ExecutionType.GENERATION.value,
        help="GENERATION: tensor in, tensor out. AR: a language model. DIFFUSION: denoising steps (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        plan = Plan.make(root, options.name, ExecutionType(options.execution))
    except CannotWrite as reason:
        print(reason, file=sys.stderr)
        return 2
    for path, fresh in plan.write():
        print(f"{'wrote' if fresh else 'added to'} {path}")
    print(f"\nNow: python -m engines.conformance {options.name} --config {plan.deployment}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
