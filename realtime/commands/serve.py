"""Serve until told to stop."""

import argparse
import contextlib
import os

from engines import logs
from realtime import server
from realtime.commands.deployment_options import add_deployment_options, chosen_deployment
from realtime.settings import api_key

STDOUT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_deployment_options(parser)


def run(arguments: argparse.Namespace) -> int:
    deployment = chosen_deployment(arguments)
    logs.set_up("gateway", deployment.server.log_style)
    server.run(deployment, api_key(), _say)
    return 0


def _say(line: str) -> None:
    """Straight to the descriptor: a server goes on when nobody reads any more, and Python has nothing to flush at its end."""
    with contextlib.suppress(OSError):
        os.write(STDOUT, f"{line}\n".encode())
