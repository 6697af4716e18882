"""The options that say which deployment is meant and what of it is changed from the command line."""

import argparse
from pathlib import Path
from typing import get_args

import msgspec

from engines.configuration import record
from engines.logs import LogFormat, LogLevel
from realtime.deployment import DEFAULT_FILE, Deployment, load
from realtime.settings import ServerSettings


def add_deployment_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--deployment", type=Path, default=DEFAULT_FILE, metavar="FILE", help="what runs (default: %(default)s)")
    parser.add_argument("--host", help="address to listen on (default: the deployment's, 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on; 0 takes a free one (default: the deployment's, 8080)")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate in PEM, with its chain: serve https (needs --tls-key)")
    parser.add_argument("--tls-key", metavar="FILE", help="the certificate's private key in PEM, without a passphrase")
    parser.add_argument(
        "--trust-proxy", action="append", metavar="ADDRESS", help="proxy that is believed, or network; repeatable"
    )
    parser.add_argument("--log-level", choices=get_args(LogLevel), help="least level of log lines (default: info)")
    parser.add_argument("--log-format", choices=get_args(LogFormat), help="lines for people or JSON objects (default: text)")
    parser.add_argument("--allow-origin", action="append", metavar="ORIGIN", help="origin whose pages may call; repeatable")
    parser.add_argument("--allow-host", action="append", metavar="NAME", help="host name that requests may name; repeatable")


def chosen_deployment(arguments: argparse.Namespace) -> Deployment:
    """Raises engines.configuration.ConfigurationError."""
    deployment = load(arguments.deployment)
    given = {
        "host": arguments.host,
        "port": arguments.port,
        "tls_cert": arguments.tls_cert,
        "tls_key": arguments.tls_key,
        "trusted_proxies": arguments.trust_proxy,
        "log_level": arguments.log_level,
        "log_format": arguments.log_format,
        "allowed_origins": arguments.allow_origin,
        "allowed_hosts": arguments.allow_host,
    }
    changed = msgspec.structs.asdict(deployment.server) | {name: value for name, value in given.items() if value is not None}
    server = record(Path("command line"), "server", changed, ServerSettings).located(Path.cwd())
    return msgspec.structs.replace(deployment, server=server)
