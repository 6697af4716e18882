"""Serve until told to stop."""

import argparse
import sys

from engines import logs
from realtime import server
from realtime.commands.deployment_options import add_deployment_options, chosen_deployment
from realtime.settings import api_key


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_deployment_options(parser)


def run(arguments: argparse.Namespace) -> int:
    deployment = chosen_deployment(arguments)
    logs.set_up("gateway", deployment.server.log_style)
    server.run(deployment, api_key(), _say)
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
