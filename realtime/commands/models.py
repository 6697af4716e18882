"""List the weights: what they are for, and whether they are here."""

import argparse
import sys

from engines.weights.cache import cache_folder, find_fault
from engines.weights.manifest import MANIFEST


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verify", action="store_true", help="read every byte and compare checksums")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 1 when some are not in order."""
    faults = {weights.name: find_fault(weights, checksums=arguments.verify) for weights in MANIFEST}
    lines = [f"weights in {cache_folder()}"]
    lines += [
        f"{weights.name:<24} {faults[weights.name] or 'ok':<14} {weights.licence:<12} {weights.role}" for weights in MANIFEST
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if any(faults.values()) else 0
