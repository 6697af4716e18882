"""API keys: make, list, revoke and rotate them."""

import argparse
import asyncio
import re
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from realtime.commands.server_options import table
from realtime.deployment import DEFAULT_FILE, Deployment, load
from realtime.keys import key_file
from sessions.identity.api_keys import KeyRecord, NewKey
from sessions.identity.key_ring import Grant, KeyRing
from sessions.identity.principal import Scope
from sessions.store.interface import KeyStore

UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
GRACE_S = 86_400
HEADINGS = ("KEY", "TENANT", "ALLOWS")
_DURATION = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smhd])")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--deployment", type=Path, default=DEFAULT_FILE, metavar="FILE", help="what runs (default: %(default)s)")
    orders = parser.add_subparsers(dest="order", required=True, metavar="ORDER")
    _add_create(orders.add_parser("create", help="make a key; it is shown this once"))
    orders.add_parser("list", help="who has which rights, never the keys themselves")
    revoke = orders.add_parser("revoke", help="end one, and the client secrets that it has made, within 5 s")
    revoke.add_argument("id", metavar="ID")
    rotate = orders.add_parser("rotate", help="another key with the same rights; the old one is good for a while")
    rotate.add_argument("id", metavar="ID")
    rotate.add_argument("--grace", type=duration_s, default=GRACE_S, metavar="1d", help="how long (default: a day)")


def run(arguments: argparse.Namespace) -> int:
    """Raises NoSuchKey, GrantRefused, StoreDown."""
    orders: dict[str, Callable[[KeyRing, argparse.Namespace], Awaitable[None]]] = {
        "create": _create,
        "list": _list,
        "revoke": _revoke,
        "rotate": _rotate,
    }
    asyncio.run(_ordered(load(arguments.deployment), orders[arguments.order], arguments))
    return 0


def duration_s(text: str) -> int:
    """`90s`, `15m`, `12h` or `30d`, in seconds."""
    form = _DURATION.fullmatch(text)
    if form is None or int(form["count"]) == 0:
        raise argparse.ArgumentTypeError(f"expected a time such as 90s, 15m, 12h or 30d, got {text!r}")
    return int(form["count"]) * UNITS_S[form["unit"]]


def _add_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenant", required=True, metavar="NAME", help="whose sessions its sessions are")
    parser.add_argument(
        "--scope", action="append", choices=[scope.value for scope in Scope], help="repeatable (default: sessions and rest)"
    )
    parser.add_argument(
        "--kind",
        action="append",
        metavar="KIND",
        help="of sessions, such as voice, and request for one-shot requests; repeatable (default: all)",
    )
    parser.add_argument("--model", action="append", metavar="MODEL", help="repeatable (default: all)")
    parser.add_argument("--origin", action="append", metavar="ORIGIN", help="whose pages may use it; repeatable")
    parser.add_argument("--expires", type=duration_s, metavar="30d", help="after so long (default: when it is revoked)")
    parser.add_argument("--longest-session", type=duration_s, metavar="1h", help="that it may open")


@asynccontextmanager
async def open_keys(deployment: Deployment) -> AsyncGenerator[KeyStore]:
    """Where the keys of this deployment are. Raises StoreDown."""
    if not deployment.store.is_shared:
        yield key_file(deployment.server)
        return
    from sessions.store.address import open_store  # nobody else needs Redis

    async with open_store(deployment.store.url, deployment.store.settle_s) as store:
        yield store


async def _ordered(
    deployment: Deployment, order: Callable[[KeyRing, argparse.Namespace], Awaitable[None]], arguments: argparse.Namespace
) -> None:
    async with open_keys(deployment) as keys:
        await order(KeyRing(keys), arguments)


async def _create(ring: KeyRing, arguments: argparse.Namespace) -> None:
    usual = Grant(tenant=arguments.tenant)
    grant = Grant(
        tenant=arguments.tenant,
        scopes=frozenset(map(Scope, arguments.scope)) if arguments.scope else usual.scopes,
        kinds=frozenset(arguments.kind) if arguments.kind else None,
        models=frozenset(arguments.model) if arguments.model else None,
        origins=tuple(arguments.origin or ()),
        longest_session_s=arguments.longest_session,
    )
    _show_new(await ring.create(grant, arguments.expires), f"of tenant {grant.tenant}")


async def _list(ring: KeyRing, _arguments: argparse.Namespace) -> None:
    keys = await ring.keys()
    if not keys:
        sys.stderr.write("there are no keys\n")
        return
    by_age = sorted(keys.items(), key=lambda named: named[1].created_at)
    rows = [(key_id, record.tenant, _rights(record)) for key_id, record in by_age]
    sys.stdout.write("".join(f"{line}\n" for line in table(HEADINGS, rows, "")))


async def _revoke(ring: KeyRing, arguments: argparse.Namespace) -> None:
    await ring.revoke(arguments.id)


async def _rotate(ring: KeyRing, arguments: argparse.Namespace) -> None:
    _show_new(await ring.rotate(arguments.id, arguments.grace), f"in place of {arguments.id}")


def _show_new(key: NewKey, what: str) -> None:
    """The key alone on the standard output, for whoever passes it on."""
    sys.stderr.write(f"key {key.key_id} {what}; it is shown this once:\n")
    sys.stdout.write(f"{key.text}\n")


def _rights(record: KeyRecord) -> str:
    rights = [", ".join(sorted(record.scopes))]
    for name, values in (("kinds", record.kinds), ("models", record.models), ("origins", record.origins or None)):
        if values is not None:
            rights.append(f"{name} {', '.join(sorted(values))}")
    if record.longest_session_s is not None:
        rights.append(f"sessions up to {record.longest_session_s:.0f} s")
    return "; ".join([*rights, f"made {_day(record.created_at)}", _end(record)])


def _end(record: KeyRecord) -> str:
    if record.expires_at is None:
        return "does not expire"
    return f"{'expires' if record.is_valid(time.time()) else 'expired'} {_day(record.expires_at)}"


def _day(unix_s: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_s))
