"""Serve until told to stop."""

import argparse
import contextlib
import os

from engines import logs
from realtime import server
from realtime.commands.deployment_options import add_deployment_options, chosen_deployment
from realtime.settings import api_key

STDOUT = 1
MOST_NODES = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_deployment_options(parser)
    parser.add_argument("--nodes", type=_count, default=1, metavar="N", help="gateways behind the port (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    deployment = chosen_deployment(arguments)
    if arguments.nodes == 1:
        logs.set_up("gateway", deployment.server.log_style)
        server.run(deployment, api_key(), _say)
    else:
        from realtime.front import server as front  # nobody else needs it

        logs.set_up("front", deployment.server.log_style)
        front.run(deployment, arguments.nodes, api_key(), _say)
    return 0


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= MOST_NODES:
        raise argparse.ArgumentTypeError(f"expected 1 to {MOST_NODES}, got {text}")
    return count


def _say(line: str) -> None:
    """Straight to the descriptor: a server goes on when nobody reads any more, and Python has nothing to flush at its end."""
    with contextlib.suppress(OSError):
        os.write(STDOUT, f"{line}\n".encode())
