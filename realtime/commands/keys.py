"""API keys: make, list, revoke and rotate them."""

import argparse
import asyncio
import re
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from realtime.commands.server_options import table
from realtime.deployment import DEFAULT_FILE, Deployment, load
from realtime.keys import key_file
from sessions.identity.api_keys import KeyRecord, NewKey
from sessions.identity.key_ring import Grant, KeyRing
from sessions.identity.principal import Scope

UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
GRACE_S = 86_400
HEADINGS = ("KEY", "TENANT", "ALLOWS")
Order: TypeAlias = "Callable[[Place, argparse.Namespace], Awaitable[None]]"
_DURATION = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smhd])")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _name_deployment(parser)
    parser.set_defaults(deployment=DEFAULT_FILE)
    orders = parser.add_subparsers(dest="order", required=True, metavar="ORDER")
    _add_create(orders.add_parser("create", help="make a key; it is shown this once"))
    orders.add_parser("list", help="who has which rights, never the keys themselves")
    revoke = orders.add_parser("revoke", help="end one, and the client secrets that it has made, within 5 s")
    revoke.add_argument("id", metavar="ID")
    rotate = orders.add_parser("rotate", help="another key with the same rights; the old one is good for a while")
    rotate.add_argument("id", metavar="ID")
    rotate.add_argument("--grace", type=duration_s, default=GRACE_S, metavar="1d", help="how long (default: a day)")
    for order in orders.choices.values():
        _name_deployment(order)


def _name_deployment(parser: argparse.ArgumentParser) -> None:
    """Before the order or after it: what stands after it does not undo what stands before."""
    what = f"that of the server which the keys are for (default: {DEFAULT_FILE})"
    parser.add_argument("--deployment", type=Path, default=argparse.SUPPRESS, metavar="FILE", help=what)


def run(arguments: argparse.Namespace) -> int:
    """Raises NoSuchKey, GrantRefused, StoreDown."""
    orders: dict[str, Order] = {
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


class Place(msgspec.Struct, frozen=True):
    """Where the keys of a deployment are. `name` is for people: of keys that are made elsewhere a server knows nothing."""

    ring: KeyRing
    name: str


@asynccontextmanager
async def open_keys(deployment: Deployment) -> AsyncGenerator[Place]:
    """Raises StoreDown."""
    if not deployment.store.is_shared:
        file = key_file(deployment.server)
        yield Place(KeyRing(file), str(file.path))
        return
    from sessions.store.address import open_store  # nobody else needs Redis

    async with open_store(deployment.store.url, deployment.store.settle_s) as store:
        yield Place(KeyRing(store), deployment.store.without_password().url)


async def _ordered(deployment: Deployment, order: Order, arguments: argparse.Namespace) -> None:
    async with open_keys(deployment) as place:
        await order(place, arguments)


async def _create(place: Place, arguments: argparse.Namespace) -> None:
    usual = Grant(tenant=arguments.tenant)
    grant = Grant(
        tenant=arguments.tenant,
        scopes=frozenset(map(Scope, arguments.scope)) if arguments.scope else usual.scopes,
        kinds=frozenset(arguments.kind) if arguments.kind else None,
        models=frozenset(arguments.model) if arguments.model else None,
        origins=tuple(arguments.origin or ()),
        longest_session_s=arguments.longest_session,
    )
    _show_new(await place.ring.create(grant, arguments.expires), f"of tenant {grant.tenant}", place)


async def _list(place: Place, _arguments: argparse.Namespace) -> None:
    keys = await place.ring.keys()
    if not keys:
        sys.stderr.write(f"there are no keys in {place.name}\n")
        return
    by_age = sorted(keys.items(), key=lambda named: named[1].created_at)
    rows = [(key_id, record.tenant, _rights(record)) for key_id, record in by_age]
    sys.stdout.write("".join(f"{line}\n" for line in table(HEADINGS, rows, "")))


async def _revoke(place: Place, arguments: argparse.Namespace) -> None:
    await place.ring.revoke(arguments.id)


async def _rotate(place: Place, arguments: argparse.Namespace) -> None:
    _show_new(await place.ring.rotate(arguments.id, arguments.grace), f"in place of {arguments.id}", place)


def _show_new(key: NewKey, what: str, place: Place) -> None:
    """The key alone on the standard output, for whoever passes it on."""
    sys.stderr.write(f"key {key.key_id} {what}, kept in {place.name}; it is shown this once:\n")
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
