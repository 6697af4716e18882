"""Print the effective configuration as YAML."""

import argparse
import sys

from realtime.commands.deployment_options import add_deployment_options, chosen_deployment
from realtime.deployment import render


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_deployment_options(parser)


def run(arguments: argparse.Namespace) -> int:
    sys.stdout.write(render(chosen_deployment(arguments)))
    return 0
