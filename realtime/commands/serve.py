"""Serve until told to stop."""

import argparse
import sys

from engines import logs
from engines.deployment import GraphSettings, with_weights
from engines.phonemes import find_espeak
from realtime import server
from realtime.commands.deployment_options import add_deployment_options, chosen_deployment
from realtime.settings import api_key

PHONEME_MODELS = {"piper_talker", "kokoro"}
"""These speak by way of the program espeak-ng."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_deployment_options(parser)


def run(arguments: argparse.Namespace) -> int:
    deployment = chosen_deployment(arguments)
    logs.set_up("gateway", deployment.server.log_level)
    graph = with_weights(deployment.graph)
    _check_programs(graph)
    server.run(deployment, graph, api_key(), _say)
    return 0


def _check_programs(graph: GraphSettings) -> None:
    """Raises EspeakMissing."""
    if PHONEME_MODELS & {stage.model for stage in graph.stages.values()}:
        find_espeak()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
