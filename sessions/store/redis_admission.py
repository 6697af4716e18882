"""Admission in Redis: each method is one Function, in functions/gate.lua and the files before it."""

from collections.abc import Mapping, Sequence

import msgspec

from sessions.store.amounts import PARTS, microseconds, used_up
from sessions.store.connection import Argument, StoreConnection
from sessions.store.counting import claimed_by, resources_of, ticket_of, told_by, wish_of
from sessions.store.failures import news_left_out, not_understood
from sessions.store.keys import ADMISSION, ADMISSION_KEYS
from sessions.store.records import (
    Admitted,
    Announcement,
    Ask,
    Census,
    Decision,
    News,
    NodeSeen,
    Order,
    Refusal,
    Refused,
    Renewed,
    Ticket,
    Waiting,
)
from sessions.store.replies import understood
from sessions.store.session_limits import checked_id
from sessions.store.wire import Reply

_pack = msgspec.msgpack.encode
_news = msgspec.msgpack.Decoder(News)


class _Seen(msgspec.Struct):
    """A node, as nodes.lua keeps it."""

    node: str
    host: str
    address: str
    ready: bool
    draining: bool


_seen = msgspec.msgpack.Decoder(_Seen)


class RedisAdmission:
    """An AdmissionStore. `settle_s`: for so long only those who come back are let in, when the store is new or has lost its
    data."""

    def __init__(self, connection: StoreConnection, settle_s: float) -> None:
        self._functions = connection
        self._settle_us = microseconds(settle_s, "settle_s")

    async def incarnation(self) -> int:
        return understood(await self._decide("incarnation"), int)

    async def settling_s(self) -> float:
        return msgspec.convert(await self._decide("settling"), int) / 1e6

    # ── nodes

    async def announce(self, node: Announcement, tickets: Sequence[Ticket] = ()) -> tuple[int, tuple[str, ...]]:
        claimed = [claimed_by(node.node, ticket, 0) for ticket in tickets]
        reply = await self._decide("announce", _pack(told_by(node)), _pack(claimed))
        incarnation, lost = understood(reply, tuple[int, list[bytes]])
        return incarnation, tuple(session_id.decode() for session_id in lost)

    async def renew(self, node: str, lease_s: float) -> Renewed:
        reply = await self._decide("renew", node, microseconds(lease_s, "lease_s"))
        incarnation, known, tickets = understood(reply, tuple[int, int, int])
        return Renewed(incarnation, known == 1, tickets)

    async def node_gone(self, node: str) -> tuple[str, ...]:
        return _texts(await self._decide("node_gone", node))

    async def nodes(self) -> tuple[NodeSeen, ...]:
        found = understood(await self._decide("nodes"), list[tuple[bytes, int, int]])
        seen = [(_seen.decode(packed), left_us, tickets) for packed, left_us, tickets in found]
        return tuple(
            NodeSeen(
                node=node.node,
                host=node.host,
                address=node.address,
                ready=node.ready,
                draining=node.draining,
                lease_s=left_us / 1e6,
                tickets=tickets,
            )
            for node, left_us, tickets in sorted(seen, key=lambda each: each[0].node)
        )

    async def news(self, node: str, after: str, wait_s: float) -> tuple[str, tuple[News, ...]]:
        if not after:
            after = understood(await self._call("last_news", node), bytes).decode()
        entries = await self._functions.read_stream(ADMISSION_KEYS["NEWS"] + node, after, wait_s)
        told = (_told(fields.get(b"news", b"")) for _, fields in entries)
        return entries[-1][0] if entries else after, tuple(news for news in told if news is not None)

    async def order(self, node: str, order: Order) -> None:
        await self._call("order", node, _pack(order))

    # ── tickets

    async def ask(self, ask: Ask) -> Decision:
        wish = wish_of(ask)
        match await self._decide("ask", _pack(wish)):
            case [b"admitted", int(number), int(life_us)]:
                return Admitted(ticket_of(wish, number, life_us))
            case [b"waiting", int(position), estimate_us]:
                return Waiting(position, _seconds(estimate_us))
            case [b"refused", bytes(reason), bytes(resource), int(retry_us)]:
                return Refused(Refusal(reason.decode()), resource.decode(), retry_us / 1e6)
            case reply:
                raise not_understood(ValueError(f"a decision: {type(reply).__name__}"))

    async def release(self, session_id: str, node: str) -> None:
        await self._decide("release", checked_id(session_id), node)

    async def keep(self, session_id: str, node: str, keep_s: float, lend_after_s: float) -> bool:
        times = microseconds(keep_s, "keep_s"), microseconds(lend_after_s, "lend_after_s")
        return await self._decide("keep", checked_id(session_id), node, *times) == 1

    async def orphans(self, limit: int) -> tuple[str, ...]:
        return _texts(await self._decide("orphans", limit))

    async def census(self) -> Census:
        reply = await self._decide("census")
        counts, *hashes, error_us = understood(reply, tuple[list[int], list[bytes], list[bytes], list[bytes], bytes | None])
        used, capacity, tenants = map(_counts, hashes)
        active, lent, waiting = counts
        return Census(
            active=active,
            lent=lent,
            waiting=waiting,
            resources=resources_of(used, capacity),
            tenants=tenants,
            wait_error_s=_seconds(error_us),
        )

    # ── bills

    async def bill(self, tenant: str, session_id: str, usage: Mapping[str, float], life_s: float = 0.0) -> None:
        await self._call("bill", tenant, checked_id(session_id), _pack(used_up(usage)), round(life_s))

    async def bills(self) -> Mapping[str, Mapping[str, float]]:
        bills: dict[str, dict[str, float]] = {}
        for name, parts in _counts(understood(await self._call("bills"), list[bytes])).items():
            tenant, _, what = name.rpartition("\0")
            bills.setdefault(tenant, {})[what] = parts / PARTS
        return bills

    # ── within

    async def _decide(self, function: str, *arguments: Argument) -> Reply:
        return await self._call(function, self._settle_us, *arguments)

    async def _call(self, function: str, *arguments: Argument) -> Reply:
        return await self._functions.call(function, (ADMISSION,), arguments)


def _told(packed: bytes) -> News | None:
    """None: a node of another version may know news that this one does not; who stopped there would hear of nothing more."""
    try:
        return _news.decode(packed)
    except msgspec.MsgspecError as wrong:
        news_left_out(wrong)
        return None


def _texts(reply: Reply) -> tuple[str, ...]:
    return tuple(session_id.decode() for session_id in understood(reply, list[bytes]))


def _counts(flat: Sequence[bytes]) -> dict[str, int]:
    return {name.decode(): int(count) for name, count in zip(flat[::2], flat[1::2], strict=True)}


def _seconds(us: Reply) -> float | None:
    """Numbers of hashes come as text."""
    return None if us is None else int(understood(us, int | bytes)) / 1e6
