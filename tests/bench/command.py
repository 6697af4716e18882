"""The command line of a benchmark that has two forms, what it says meanwhile and what it prints."""

import argparse
import sys
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec

P = TypeVar("P")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def chosen(description: str | None, full: P, short: P) -> P:
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--short", action="store_true")
    return short if options.parse_args().short else full


async def reported(measuring: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Prints what was measured as one JSON object."""
    started = time.monotonic()
    result = await measuring
    note(f"measured in {time.monotonic() - started:.0f} s")
    print(msgspec.json.encode(result).decode())
    return result
