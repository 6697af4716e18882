"""The options of commands that ask a running server, and how they show its answers."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from realtime.admin.client import AdminClient
from realtime.settings import API_KEY_VARIABLE, api_key
from realtime.talk import DEFAULT_URL

GAP = "  "
MOST_DIGITS = 18


def add_server_options(parser: argparse.ArgumentParser, url: str | None = DEFAULT_URL) -> None:
    default = "" if url is None else " (default: %(default)s)"
    parser.add_argument("--url", default=url, help=f"where the server is{default}; its key is in {API_KEY_VARIABLE}")
    parser.add_argument("--cacert", type=Path, metavar="FILE", help="certificate in PEM to trust for https, besides the system's")
    parser.add_argument("--json", action="store_true", help="JSON in place of a table")


def client(arguments: argparse.Namespace) -> AdminClient:
    """Raises AdminFailed."""
    return AdminClient(arguments.url, api_key(), arguments.cacert)


def count(text: str) -> int:
    """1 or more, as argparse wants to be told."""
    if not (text.isascii() and text.isdigit() and int(text[:MOST_DIGITS])):
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text[:MOST_DIGITS]!r}")
    return int(text[:MOST_DIGITS])


def number(amount: float) -> str:
    """All its digits, grouped."""
    return f"{amount:,.10g}"


def show(arguments: argparse.Namespace, answer: msgspec.Struct | Sequence[msgspec.Struct], lines: Iterable[str]) -> None:
    """`answer` as it is with --json, else `lines`."""
    said = [msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()] if arguments.json else lines
    sys.stdout.write("".join(f"{line}\n" for line in said))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> list[str]:
    """Columns as wide as what stands in them; `empty` in place of a table without rows."""
    if not rows:
        return [empty]
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return [GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def amounts(usage: Mapping[str, float]) -> str:
    return ", ".join(f"{what} {number(amount)}" for what, amount in sorted(usage.items())) or "-"
