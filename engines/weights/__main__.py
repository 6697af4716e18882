"""`python -m engines.weights [fetch|verify|list] [NAME…]`"""

import argparse
import sys
from collections.abc import Callable

from engines.weights.cache import WeightsError, find_fault, folder
from engines.weights.fetch import fetch
from engines.weights.manifest import MANIFEST, UnknownWeights, Weights, entry

_INTERRUPTED_STATUS = 130


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 when all (but optional weights) are in place."""
    parser = argparse.ArgumentParser(prog="python -m engines.weights", description="The model weights in the cache.")
    parser.add_argument("action", choices=tuple(_ACTIONS), nargs="?", default="fetch")
    parser.add_argument("names", metavar="NAME", nargs="*", help="as in `list`; default: all")
    parser.add_argument("--verify", action="store_true", help="fetch: read what is there in full instead of trusting sizes")
    options = parser.parse_args(arguments)
    try:
        chosen = [entry(name) for name in options.names] or list(MANIFEST)
        action = _ACTIONS["fetch --verify" if options.verify and options.action == "fetch" else options.action]
        return max(action(weights) for weights in chosen)
    except (UnknownWeights, OSError) as failure:
        return _complain(str(failure))
    except KeyboardInterrupt:
        _complain("stopped; run this again to go on")
        return _INTERRUPTED_STATUS


def _fetch(weights: Weights, *, checksums: bool = False) -> int:
    try:
        fetch(weights, checksums=checksums)
    except WeightsError as failure:
        if not weights.optional:
            return _complain(str(failure))
        _complain(f"going on without {weights.name} ({weights.role}): {failure}")
    return 0


def _verify(weights: Weights) -> int:
    fault = find_fault(weights, checksums=True)
    print(f"{weights.name}: {fault or 'as fetched'} in {folder(weights.name)}")
    return 1 if fault and not weights.optional else 0


def _list(weights: Weights) -> int:
    megabytes = sum(file.size_bytes for file in weights.files) / 1_000_000
    packages = ", ".join(str(package) for package in weights.packages())
    state = "here" if not find_fault(weights) else "not here"
    print(f"{weights.name:<24}{state:<10}{megabytes:>5.0f} MB  {weights.role}; {weights.licence}; {packages}")
    return 0


def _complain(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 1


_ACTIONS: dict[str, Callable[[Weights], int]] = {
    "fetch": _fetch,
    "verify": _verify,
    "list": _list,
    "fetch --verify": lambda weights: _fetch(weights, checksums=True),
}

if __name__ == "__main__":
    sys.exit(main())
