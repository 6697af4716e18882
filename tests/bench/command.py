"""The command line of a benchmark that has two forms, what it says meanwhile and what it prints."""

import argparse
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import msgspec

from bench.server import Server, running_server

P = TypeVar("P")
Measured: TypeAlias = Awaitable[dict[str, Any]]


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def chosen(description: str | None, full: P, short: P) -> P:
    return short if _options(description).parse_args().short else full


async def measured_at_a_server(description: str | None, full: P, short: P, measure: Callable[[Server, P], Measured]) -> None:
    """One of its own, or a running one that `--url` names."""
    options = _options(description)
    options.add_argument("--url", help="measure a running server instead of starting one (needs --pid)")
    options.add_argument("--pid", type=int)
    asked = options.parse_args()
    plan = short if asked.short else full
    if asked.url:
        await reported(measure(Server(asked.url, asked.pid, 0.0), plan))
        return
    async with running_server("--log-level", "warning") as server:
        await reported(measure(server, plan))


async def reported(measuring: Measured) -> dict[str, Any]:
    """Prints what was measured as one JSON object."""
    started = time.monotonic()
    result = await measuring
    note(f"measured in {time.monotonic() - started:.0f} s")
    print(msgspec.json.encode(result).decode())
    return result


def _options(description: str | None) -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--short", action="store_true")
    return options
