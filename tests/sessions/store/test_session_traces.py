"""What a session leaves in Redis when it has ended: nothing. And what it has there ends by itself."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server
from sessions.store.address import open_store
from sessions.store.connection import StoreConnection
from sessions.store.interface import Store
from sessions.store.keys import session_keys
from sessions.store.records import Claimed, Entry, Fence, SessionRecord, Write
from sessions.store.wire import Reply

SECRET = b"canary-7f3a"
SESSION = "sess_0123456789abcdef0123"


class Looked:
    """Everything that a server holds."""

    def __init__(self, server: RedisServer) -> None:
        self._wire = one_server(("127.0.0.1", server.port))

    async def ask(self, *command: str | bytes | int) -> Reply:
        return await self._wire.ask(*command)

    async def keys(self) -> list[bytes]:
        keys = await self.ask("KEYS", "*")
        assert isinstance(keys, list)
        return [bytes(key) for key in keys if isinstance(key, bytes)]

    async def everything(self) -> bytes:
        """Names and contents."""
        dumps = [await self.ask("DUMP", key) for key in await self.keys()]
        return b"\n".join([*await self.keys(), *(dump for dump in dumps if isinstance(dump, bytes))])

    async def close(self) -> None:
        await self._wire.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[RedisServer]:
    async with running_redis(tmp_path, "--rdbcompression", "no") as running:
        yield running


@pytest.fixture
async def looked(server: RedisServer) -> AsyncGenerator[Looked]:
    looked = Looked(server)
    yield looked
    await looked.close()


@pytest.fixture
async def store(server: RedisServer) -> AsyncGenerator[Store]:
    async with open_store(server.url, 0.0) as store:
        yield store


def opened(tenant: str = "t", life_s: float = 50.0, grace_s: float = 600.0, session_id: str = SESSION) -> SessionRecord:
    return SessionRecord(session_id=session_id, tenant=tenant, kind="voice", model="m", life_s=life_s, grace_s=grace_s)


async def full_session(store: Store, life_s: float = 3600.0, grace_s: float = 600.0) -> Fence:
    await store.open(opened(life_s=life_s, grace_s=grace_s), "a", 10.0, b"1" * 32)
    claimed = await store.claim(SESSION, "a", 10.0, b"1" * 32, b"2" * 32)
    assert isinstance(claimed, Claimed)
    write = Write(
        events=(Entry(1, SECRET),), inputs=(SECRET,), snapshot=SECRET, results={SECRET.decode(): SECRET}, usage={"s": 1}
    )
    await store.write(SESSION, claimed.fence, write)
    await store.write(SESSION, claimed.fence, Write(inputs=(SECRET,)))
    return claimed.fence


async def test_an_end_leaves_nothing(store: Store, looked: Looked):
    fence = await full_session(store)
    before = await looked.everything()
    assert SECRET in before
    assert SESSION.encode() in before
    await store.end(SESSION, fence)
    after = await looked.everything()
    assert SECRET not in after
    assert SESSION.encode() not in after


async def test_a_stranger_that_tried_the_id_leaves_nothing_either(store: Store, looked: Looked):
    fence = await full_session(store)
    with pytest.raises(ValueError, match="in use"):
        await store.open(opened(tenant="stranger"), "b", 10.0, b"3" * 32)
    await store.end(SESSION, fence)
    assert SESSION.encode() not in await looked.everything()


async def test_a_session_has_the_keys_of_the_schema_and_no_others(store: Store, looked: Looked):
    await full_session(store)
    assert {key.split(b":")[-1] for key in await looked.keys() if SESSION.encode() in key} == {
        key.split(":")[-1].encode() for key in session_keys(SESSION)
    }


async def longest_left_ms(looked: Looked) -> int:
    """Of all keys of the session, of which each ends."""
    left_ms = [await looked.ask("PTTL", key) for key in await looked.keys() if SESSION.encode() in key]
    told = [left for left in left_ms if isinstance(left, int)]
    assert min(told) > 0, "one does not end"
    return max(told)


async def test_all_keys_of_a_session_end_with_it(store: Store, looked: Looked):
    slack_ms = 2000
    fence = await full_session(store, life_s=50, grace_s=20)
    assert 29_000 < await longest_left_ms(looked) <= 30_000 + slack_ms
    await store.renew_owned({SESSION: fence}, 1000)
    assert 40_000 < await longest_left_ms(looked) <= 50_000, "not beyond the longest life"
    await store.disown(SESSION, "a")
    assert 19_000 < await longest_left_ms(looked) <= 20_000 + slack_ms


async def test_keys_that_a_later_write_makes_end_too(store: Store, looked: Looked):
    fence = await store.open(opened(), "a", 10.0, b"1" * 32)
    for write in (
        Write(events=(Entry(1, b"x"),)),
        Write(inputs=(b"x",)),
        Write(snapshot=b"x"),
        Write(results={"e": b"x"}),
        Write(acknowledged=1),
        Write(events=(Entry(2, b"x"),), inputs=(b"x",)),
        Write(snapshot=b"y"),
    ):
        await store.write(SESSION, fence, write)
        assert await longest_left_ms(looked) <= 50_000, write


async def test_a_session_that_ended_by_itself_is_gone_from_the_lists(store: Store, looked: Looked):
    await store.open(opened(life_s=0.05), "a", 10.0, b"1" * 32)
    while await looked.ask("EXISTS", *session_keys(SESSION)):
        pass
    assert await store.sessions("t", "", 10) == ()
    await store.open(opened(session_id="s2"), "a", 10.0, b"1" * 32)  # a newcomer sweeps the lists
    assert SESSION.encode() not in await looked.everything()


class Crash(Exception):
    pass


async def test_a_crash_in_the_middle_of_an_opening_or_an_end(store: Store, looked: Looked, monkeypatch: pytest.MonkeyPatch):
    """Whatever call a process dies before, all sessions are listed and no other."""
    call = StoreConnection.call

    def dying_before(function: str) -> None:
        async def cut(self: StoreConnection, name: str, *rest: object) -> Reply:
            if name == function:
                raise Crash
            return await call(self, name, *rest)  # pyright: ignore[reportArgumentType]  as they came

        monkeypatch.setattr(StoreConnection, "call", cut)

    record = opened()
    dying_before("session_open")
    with pytest.raises(Crash):
        await store.open(record, "a", 10.0, b"1" * 32)
    monkeypatch.undo()
    assert await store.sessions(None, "", 10) == ()
    await store.open(record, "a", 10.0, b"1" * 32)
    assert [listed.record.session_id for listed in await store.sessions("t", "", 10)] == [SESSION]
    dying_before("listing_drop")
    with pytest.raises(Crash):
        await store.end(SESSION, None)
    monkeypatch.undo()
    assert await store.sessions(None, "", 10) == ()
    dying_before("listing_drop")
    with pytest.raises(Crash):
        await store.open(opened(tenant="heir"), "a", 10.0, b"1" * 32)
    monkeypatch.undo()
    assert await store.sessions("t", "", 10) == (), "it is another tenant's now"
    await store.end(SESSION, None)
    assert SESSION.encode() not in await looked.everything()
