"""Run one worker of a deployment by itself, for gateways on this host or others."""

import argparse
import os
import sys
from pathlib import Path
from typing import get_args

from engines.launching.machine import this_machine
from engines.launching.standalone import standalone_spec
from engines.launching.worker_process import environment
from engines.logs import LogFormat, LogLevel, LogStyle
from engines.worker.spec import encoder
from realtime.deployment import DEFAULT_FILE, load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="one of the deployment's `workers`")
    parser.add_argument("--deployment", type=Path, default=DEFAULT_FILE, metavar="FILE", help="what runs (default: %(default)s)")
    parser.add_argument("--listen", default="", metavar="ADDRESS", help="tcp://host:port or unix:/path (default: its `address`)")
    parser.add_argument("--log-level", choices=get_args(LogLevel), help="least level of log lines (default: the deployment's)")
    parser.add_argument("--log-format", choices=get_args(LogFormat), help="lines for people or JSON objects (default: likewise)")


def run(arguments: argparse.Namespace) -> int:
    """Becomes the worker, so it does not return unless nothing can be started."""
    deployment = load(arguments.deployment)
    style = deployment.server.log_style
    logs = LogStyle(arguments.log_level or style.level, arguments.log_format or style.format)
    spec = standalone_spec(arguments.deployment, deployment.graph, arguments.name, arguments.listen, logs, this_machine())
    told = os.memfd_create("spec", 0)
    os.write(told, encoder.encode(spec))
    # A process of its own: numerics read their settings when they are imported, and here they are already.
    os.execve(sys.executable, [sys.executable, "-m", "engines.worker", f"/proc/self/fd/{told}"], environment(spec))
