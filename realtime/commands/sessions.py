"""The sessions of a running server, and of all that share its store: list them, look at one, close one."""

import argparse
from urllib.parse import quote

from realtime.admin.client import AdminClient
from realtime.admin.records import SessionClosed, SessionPage, SessionShown
from realtime.commands.server_options import add_server_options, amounts, client, count, show, table

PATH = "/sessions"
HEADINGS = ("SESSION", "TENANT", "KIND", "STATE", "NODE", "LIFE LEFT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    orders = parser.add_subparsers(dest="order", required=True, metavar="ORDER")
    listing = orders.add_parser("list", help="all that the key may see")
    listing.add_argument("--tenant", help="of this one alone")
    listing.add_argument("--limit", type=count, default=1000, help="at most so many (default: %(default)s)")
    for name, summary in (("show", "one of them"), ("close", "end one: its client is told, and all of it is deleted")):
        orders.add_parser(name, help=summary).add_argument("session", metavar="ID")
    for order in orders.choices.values():
        add_server_options(order)


def run(arguments: argparse.Namespace) -> int:
    """Raises AdminFailed."""
    server = client(arguments)
    match arguments.order:
        case "list":
            found = _all(server, arguments.tenant, arguments.limit)
            show(arguments, found, table(HEADINGS, [_row(each) for each in found], "no sessions"))
        case "show":
            one = server.ask("GET", f"{PATH}/{quote(arguments.session, safe='')}", SessionShown)
            show(arguments, one, _lines(one))
        case _:
            closed = server.ask("DELETE", f"{PATH}/{quote(arguments.session, safe='')}", SessionClosed)
            show(arguments, closed, [f"{closed.id}: {closed.status}{f' at {closed.node}' if closed.node else ''}"])
    return 0


def _all(server: AdminClient, tenant: str | None, limit: int) -> list[SessionShown]:
    """Page after page."""
    found: list[SessionShown] = []
    query = {} if tenant is None else {"tenant": tenant}
    while len(found) < limit:
        page = server.ask("GET", PATH, SessionPage, query | {"limit": str(min(limit - len(found), 1000))})
        found += page.data
        if page.next is None:
            break
        query["after"] = page.next
    return found


def _row(session: SessionShown) -> tuple[str, ...]:
    life = f"{session.life_s:,.0f} s"
    return session.id, session.tenant, session.kind, session.state, session.node or "-", life


def _lines(session: SessionShown) -> list[str]:
    heads = [heading.lower() for heading in HEADINGS]
    rows = [*zip(heads, _row(session), strict=True), ("model", session.model), ("opened by", session.principal or "-")]
    rows.append(("used", amounts(session.usage)))
    return [f"{name:<10} {value}" for name, value in rows]
