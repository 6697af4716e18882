"""The nodes of a server that runs with several: see how they are, take one away, start them anew one after the other.

list, undrain, and drain with --url are about all nodes that share a store, wherever they run."""

import argparse
import asyncio
import sys
from pathlib import Path

from realtime.commands import nodes_of_store
from realtime.commands.server_options import add_server_options
from realtime.deployment import DEFAULT_FILE, load
from realtime.front.control import ask, control_path
from realtime.front.messages import Answer, Drain, Look, Restart, ToFront


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _name_server(parser)
    parser.set_defaults(deployment=DEFAULT_FILE, port=None)
    orders = parser.add_subparsers(dest="order", metavar="ORDER")
    _name_server(orders.add_parser("status", help="how they are (the default)"))
    drain = orders.add_parser(
        "drain", help="move the sessions of one to the others and end it, until it is restarted; with --url it stays, for undrain"
    )
    drain.add_argument("node", metavar="NODE")
    _name_server(drain)
    add_server_options(drain, url=None)
    undrain = orders.add_parser("undrain", help="one that was drained with --url takes sessions again")
    undrain.add_argument("node", metavar="NODE")
    add_server_options(undrain)
    add_server_options(orders.add_parser("list", help="all that share the store of the server at --url"))
    restart = orders.add_parser("restart", help="one after the other, or one alone: drained, started anew, ready")
    restart.add_argument("node", metavar="NODE", nargs="?", default="")
    _name_server(restart)


def _name_server(parser: argparse.ArgumentParser) -> None:
    """Before the order or after it: what stands after it does not undo what stands before."""
    unsaid = argparse.SUPPRESS
    parser.add_argument("--deployment", type=Path, default=unsaid, metavar="FILE", help=f"what runs (default: {DEFAULT_FILE})")
    parser.add_argument("--port", type=int, default=unsaid, help="port of the server (default: the deployment's, 8080)")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 1 when the order was not carried out. Raises AdminFailed, NoFront."""
    if arguments.order == "list":
        return nodes_of_store.list_nodes(arguments)
    if arguments.order == "undrain" or (arguments.order == "drain" and arguments.url is not None):
        return nodes_of_store.order(arguments)
    port = arguments.port or load(arguments.deployment).server.port
    return asyncio.run(_ordered(control_path(port), _order(arguments)))


def _order(arguments: argparse.Namespace) -> ToFront:
    match arguments.order:
        case "drain":
            return Drain(arguments.node)
        case "restart":
            return Restart(arguments.node)
        case _:
            return Look()


async def _ordered(path: Path, order: ToFront) -> int:
    async for answer in ask(path, order):
        if answer.said:
            _say(answer.said)
        if answer.fault:
            sys.stderr.write(f"antiphon: {answer.fault}\n")
            return 1
        if answer.done:
            _show(answer)
    return 0


def _show(answer: Answer) -> None:
    for node in answer.nodes:
        state = "draining" if node.draining else "ready" if node.ready else "away" if not node.pid else "loading"
        _say(f"{node.node:<32} {state:<9} {node.sessions:>4} sessions, process {node.pid or '-'}, start {node.starts}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
