"""The command line of a benchmark that has two forms."""

import argparse
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec

from bench.voice import note

P = TypeVar("P")


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
