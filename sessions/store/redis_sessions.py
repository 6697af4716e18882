"""Sessions in Redis: each method is one Function, in functions/session_*.lua, but for the list of all, which is in another
slot."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from sessions.states import State
from sessions.store.connection import Argument, StoreConnection
from sessions.store.failures import not_understood
from sessions.store.interface import Fenced, UnknownSession
from sessions.store.keys import LISTING, session_keys
from sessions.store.records import Claimed, Entry, Fence, Kept, Listed, Missed, OwnedBy, Owner, SessionRecord, Write
from sessions.store.replies import understood
from sessions.store.session_limits import InputsFull, check_record, check_write, checked_id
from sessions.store.wire import Reply

_PAGE = 100


class RedisSessions:
    """A SessionStore. `incarnation` asks for that of the store's data."""

    def __init__(self, connection: StoreConnection, incarnation: Callable[[], Awaitable[int]]) -> None:
        self._connection = connection
        self._current_incarnation = incarnation

    # ── ownership

    async def open(self, record: SessionRecord, node: str, lease_s: float, token: bytes) -> Fence:
        reply = await self._begin("session_open", record, node, lease_s, (token,), Fence(0, 0))
        if reply[0] == b"in use":
            raise ValueError(f"session id: expected a new one, got {record.session_id!r}, which is in use")
        return _fence(reply[1:])

    async def restore(self, record: SessionRecord, node: str, lease_s: float, tokens: Sequence[bytes], above: Fence) -> Fence:
        reply = await self._begin("session_restore", record, node, lease_s, tokens, above)
        if reply[0] == b"fenced":
            raise Fenced(record.session_id, above)
        return _fence(reply[1:])

    async def claim(
        self, session_id: str, node: str, lease_s: float, token: bytes, offer: bytes, *, above: Fence | None = None
    ) -> Claimed | OwnedBy | None:
        floor = above or Fence(0, 0)
        incarnation = await self._current_incarnation()
        arguments = (node, _us(lease_s), token, offer, incarnation, floor.incarnation, floor.number)
        reply = await self._ask_session("session_claim", session_id, arguments)
        if reply[0] == b"unknown":
            return None
        if reply[0] == b"owned":
            _, owner, left_us = understood(reply, tuple[bytes, bytes, int])
            return OwnedBy(owner.decode(), left_us / 1e6)
        _, record, state, life_us, *fence, seq, moved = reply
        return Claimed(record=_record(record, state, life_us), fence=_fence(fence), seq=_int(seq), moved=moved == 1)

    async def delivered(self, session_id: str, fence: Fence, token: bytes) -> None:
        await self._owned("session_delivered", session_id, fence, (token,))

    async def renew_owned(self, owned: Mapping[str, Fence], lease_s: float) -> Mapping[str, bool]:
        calls = (
            self._ask_session("session_renew", session_id, (*_pair(fence), _us(lease_s))) for session_id, fence in owned.items()
        )
        return {session_id: reply[0] == b"ok" for session_id, reply in zip(owned, await asyncio.gather(*calls), strict=True)}

    async def disown(self, session_id: str, node: str) -> None:
        await self._ask_session("session_disown", session_id, (node,))

    # ── content

    async def write(self, session_id: str, fence: Fence, write: Write) -> None:
        check_write(write)
        if (await self._owned("session_write", session_id, fence, _arguments(write)))[0] == b"inputs full":
            raise InputsFull(session_id)

    async def missed(self, session_id: str, fence: Fence, after: int) -> Missed:
        _, complete, *flat = await self._owned("session_missed", session_id, fence, (after,))
        entries = tuple(Entry(_int(seq), _bytes(event)) for seq, event in zip(flat[::2], flat[1::2], strict=True))
        return Missed(entries, complete=complete == 1)

    async def kept(self, session_id: str, fence: Fence) -> Kept:
        _, snapshot, inputs = await self._owned("session_kept", session_id, fence, ())
        return Kept(None if snapshot is None else _bytes(snapshot), understood(inputs, tuple[bytes, ...]))

    async def result(self, session_id: str, event_id: str) -> bytes | None:
        keys = session_keys(checked_id(session_id))
        return understood(await self._connection.call("session_result", keys, (event_id,)), bytes | None)

    # ── looking, ending

    async def owner(self, session_id: str) -> Owner | None:
        reply = await self._ask_session("session_owner", session_id, ())
        if reply[0] == b"unknown":
            return None
        _, node, *fence, left_us = reply
        return Owner(_text(node), _fence(fence), _int(left_us) / 1e6)

    async def look(self, session_id: str) -> Listed | None:
        return _listed(await self._ask_session("session_look", session_id, ()))

    async def sessions(self, tenant: str | None, after: str, limit: int) -> tuple[Listed, ...]:
        found: list[Listed] = []
        while len(found) < limit:
            ids = await self._page(tenant, after, min(limit - len(found), _PAGE))
            if not ids:
                break
            after = ids[-1]
            for session_id, listed in zip(ids, await asyncio.gather(*map(self.look, ids)), strict=True):
                if listed is None:
                    await self._connection.call("listing_met_gone", LISTING, (session_id,))
                elif tenant in (None, listed.record.tenant):
                    found.append(listed)
        return tuple(found)

    async def end(self, session_id: str, fence: Fence | None) -> Listed | None:
        reply = await self._ask_session("session_end", session_id, () if fence is None else _pair(fence))
        if fence is not None and reply[0] == b"fenced":
            raise Fenced(session_id, fence)
        await self._connection.call("listing_drop", LISTING, (session_id,))
        return _listed(reply)

    # ── within

    async def _begin(
        self, function: str, record: SessionRecord, node: str, lease_s: float, tokens: Sequence[bytes], above: Fence
    ) -> list[Reply]:
        check_record(record)
        life_us, grace_us = _us(record.life_s), _us(record.grace_s)
        incarnation = await self._current_incarnation()
        entry = (record.session_id, record.tenant, life_us)
        is_listed = await self._connection.call("listing_add", LISTING, entry)
        opening = (node, _us(lease_s), tokens[0], incarnation, *_pair(above))
        packed = msgspec.msgpack.encode(record)
        arguments = (*opening, packed, life_us, grace_us, record.state, *tokens[1:])
        reply = await self._ask_session(function, record.session_id, arguments)
        if reply[0] == b"ok" and not is_listed:  # the id was another tenant's, whose session has ended
            await self._connection.call("listing_drop", LISTING, (record.session_id,))
            await self._connection.call("listing_add", LISTING, entry)
        return reply

    async def _page(self, tenant: str | None, after: str, limit: int) -> tuple[str, ...]:
        arguments = (after, limit) if tenant is None else (after, limit, tenant)
        reply = await self._connection.call("listing_page", LISTING, arguments)
        return tuple(_text(session_id) for session_id in understood(reply, list[bytes]))

    async def _owned(self, function: str, session_id: str, fence: Fence, arguments: Sequence[Argument]) -> list[Reply]:
        reply = await self._ask_session(function, session_id, (*_pair(fence), *arguments))
        if reply[0] == b"unknown":
            raise UnknownSession(session_id)
        if reply[0] == b"fenced":
            raise Fenced(session_id, fence)
        return reply

    async def _ask_session(self, function: str, session_id: str, arguments: Sequence[Argument]) -> list[Reply]:
        reply = await self._connection.call(function, session_keys(checked_id(session_id)), arguments)
        if not isinstance(reply, list) or not reply:
            raise not_understood(ValueError(f"of {function}: {type(reply).__name__}"))
        return reply


def _arguments(write: Write) -> list[Argument]:
    usage = msgspec.msgpack.encode(write.usage) if write.usage else b""
    arguments: list[Argument] = [write.number, write.promised, write.acknowledged, write.state or "", usage]
    arguments += [0] if write.snapshot is None else [1, write.snapshot]
    arguments += [len(write.inputs), *write.inputs]
    arguments += [len(write.events), *(part for entry in write.events for part in (entry.seq, entry.event))]
    return [*arguments, len(write.results), *(part for result in write.results.items() for part in result)]


def _listed(reply: Sequence[Reply]) -> Listed | None:
    if reply[0] == b"unknown":
        return None
    _, record, state, life_us, node, *fence, usage = reply
    billed = msgspec.msgpack.decode(usage, type=dict[str, float]) if isinstance(usage, bytes) and usage else {}
    return Listed(record=_record(record, state, life_us), node=_text(node), fence=_fence(fence), usage=billed)


def _record(packed: Reply, state: Reply, life_us: Reply) -> SessionRecord:
    record = msgspec.msgpack.decode(_bytes(packed), type=SessionRecord)
    return msgspec.structs.replace(record, state=State(_text(state)), life_s=_int(life_us) / 1e6)


def _fence(reply: Sequence[Reply]) -> Fence:
    return Fence(*understood(reply, tuple[int, int]))


def _pair(fence: Fence) -> tuple[int, int]:
    return fence.incarnation, fence.number


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _int(reply: Reply) -> int:
    return understood(reply, int)


def _bytes(reply: Reply) -> bytes:
    return understood(reply, bytes)


def _text(reply: Reply) -> str:
    return _bytes(reply).decode()
