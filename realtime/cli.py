"""`antiphon serve | talk | config | models`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from engines.configuration import ConfigurationError
from engines.phonemes import EspeakMissing
from engines.weights import WeightsError
from realtime import talk
from realtime.commands import config, models, serve
from realtime.guard import ExposureRefused
from realtime.server import CannotListen

OPERATOR_ERRORS = (ConfigurationError, WeightsError, EspeakMissing, ExposureRefused, CannotListen)
"""What a person can put right: told in one sentence, without a traceback."""


class Command(Protocol):
    """A module of this shape. `run` returns the exit code."""

    __doc__: str | None
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS: dict[str, Command] = {"serve": serve, "talk": talk, "config": config, "models": models}


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    try:
        return COMMANDS[parsed.command].run(parsed)
    except OPERATOR_ERRORS as wrong:
        print(f"antiphon: {wrong}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="antiphon", description="A server for long-lived realtime sessions.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        summary = (command.__doc__ or "").splitlines()[0]
        command.add_arguments(commands.add_parser(name, help=summary, description=command.__doc__))
    return parser


if __name__ == "__main__":
    sys.exit(main())
