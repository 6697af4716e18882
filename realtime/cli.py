"""`antiphon serve | talk | config | models | keys | sessions | queue | usage | nodes | worker`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Protocol

from engines.configuration import ConfigurationError
from engines.phonemes import EspeakMissing
from engines.weights import WeightsError
from realtime import talk
from realtime.admin.client import AdminFailed
from realtime.calibration.probe import ProbeFailed
from realtime.commands import calibrate, config, keys, models, nodes, queue, serve, sessions, usage, worker
from realtime.exposure import ExposureRefused
from realtime.front.control import NoFront
from realtime.front.needs import NodesNeedStore
from realtime.keys import KeysWrong
from realtime.listener import CannotListen
from realtime.tls import TlsError
from realtime.webrtc.turn import TurnSecretMissing
from sessions.identity.key_ring import GrantRefused, NoSuchKey
from sessions.store.interface import StoreDown
from sessions.store.url import BadAddress

OPERATOR_ERRORS = (
    ConfigurationError,
    ProbeFailed,
    WeightsError,
    EspeakMissing,
    ExposureRefused,
    KeysWrong,
    GrantRefused,
    NoSuchKey,
    BadAddress,
    StoreDown,
    TurnSecretMissing,
    TlsError,
    CannotListen,
    NodesNeedStore,
    NoFront,
    AdminFailed,
)
"""What a person can put right: told in one sentence, without a traceback."""


class Command(Protocol):
    """A module of this shape. `run` returns the exit code."""

    __doc__: str | None
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS: dict[str, Command] = {
    "serve": serve,
    "talk": talk,
    "config": config,
    "calibrate": calibrate,
    "models": models,
    "keys": keys,
    "sessions": sessions,
    "queue": queue,
    "usage": usage,
    "nodes": nodes,
    "worker": worker,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parsed, unknown = _parser().parse_known_args(arguments)
    if unknown:
        parsed.own_parser.error(f"there is no option {unknown[0]}")
    try:
        return COMMANDS[parsed.command].run(parsed)
    except OPERATOR_ERRORS as wrong:
        print(f"antiphon: {wrong}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="antiphon", description="A server for long-lived realtime sessions.")
    parser.add_argument("--version", action="version", version=f"antiphon {version('antiphon')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        summary = (command.__doc__ or "").splitlines()[0]
        own_parser = commands.add_parser(name, help=summary, description=command.__doc__)
        own_parser.set_defaults(own_parser=own_parser)
        command.add_arguments(own_parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
