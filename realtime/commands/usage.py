"""What tenants have used so far, and what each may have."""

import argparse

from realtime.admin.records import TenantPage, TenantShown
from realtime.commands.server_options import add_server_options, amounts, client, show, table

HEADINGS = ("TENANT", "ACTIVE", "QUOTA", "USED")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenant", help="this one alone")
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Raises AdminFailed."""
    server, found, query = client(arguments), list[TenantShown](), {"limit": "1000"}
    while True:
        page = server.ask("GET", "/tenants", TenantPage, query)
        found += page.data
        if page.next is None:
            break
        query["after"] = page.next
    wanted = [tenant for tenant in found if arguments.tenant in (None, tenant.id)]
    empty = "nobody has used anything" if arguments.tenant is None else f"no tenant {arguments.tenant} has used anything"
    show(arguments, wanted, table(HEADINGS, [_row(tenant) for tenant in wanted], empty))
    return 0


def _row(tenant: TenantShown) -> tuple[str, ...]:
    quota = "-" if tenant.sessions is None else str(tenant.sessions)
    return tenant.id, str(tenant.active), quota, amounts(tenant.usage)
