"""The nodes that share a store, wherever they run, as the admin paths of any of them tell."""

import argparse
from urllib.parse import quote

from realtime.admin.records import NodeList, NodeShown, NodeTold
from realtime.commands.server_options import client, show, table

HEADINGS = ("NODE", "HOST", "ADDRESS", "STATE", "TICKETS", "LEASE LEFT")


def list_nodes(arguments: argparse.Namespace) -> int:
    """Raises AdminFailed."""
    found = client(arguments).ask("GET", "/nodes", NodeList).data
    show(arguments, found, table(HEADINGS, [_row(node) for node in found], "no nodes"))
    return 0


def order(arguments: argparse.Namespace) -> int:
    """Raises AdminFailed."""
    path = f"/nodes/{quote(arguments.node, safe='')}/{arguments.order}"
    told = client(arguments).ask("POST", path, NodeTold)
    show(arguments, told, [f"{told.id} is told to {told.order}"])
    return 0


def _row(node: NodeShown) -> tuple[str, ...]:
    return node.id, node.host, node.address or "-", _state(node), str(node.tickets), f"{node.lease_s:.1f} s"


def _state(node: NodeShown) -> str:
    if node.lease_s <= 0:
        return "dead"
    if node.draining:
        return "draining"
    return "ready" if node.ready else "loading"
