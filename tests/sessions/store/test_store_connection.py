"""The connection to a real Redis that is cancelled, killed, flushed, stopped, full, read-only or not yet loaded."""

import asyncio
import logging
import re
import signal
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from redis.exceptions import DataError, InvalidResponse, MovedError, RedisError, ResponseError

from fakes.clock import Clock
from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server
from sessions.store import failures
from sessions.store.address import connected, open_store
from sessions.store.connection import StoreConnection
from sessions.store.failures import store_down
from sessions.store.interface import StoreDown
from sessions.store.library import library
from sessions.store.records import Announcement, Order
from sessions.store.redis_admission import RedisAdmission
from sessions.store.sparse_log import MOST_CAUSES, PERIOD_S, SparseLog
from sessions.store.url import parse

TIMEOUT_S = 0.5
KEY = "{shelves}:s"


@pytest.fixture(autouse=True)
def nothing_logged_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "errors", SparseLog(logging.getLogger(failures.__name__)))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[RedisServer]:
    async with running_redis(tmp_path) as running:
        yield running


@pytest.fixture
async def connection(server: RedisServer) -> AsyncGenerator[StoreConnection]:
    async with connected(parse(server.url), timeout_s=TIMEOUT_S) as connection:
        yield connection


async def put(connection: StoreConnection, name: str, value: bytes = b"v") -> object:
    return await connection.call("shelf_put", (KEY,), (name, value, 0))


async def command(server: RedisServer, *words: str) -> object:
    wire = one_server(("127.0.0.1", server.port))
    try:
        return await wire.ask(*words)
    finally:
        await wire.close()


async def test_each_caller_gets_its_own_reply_though_others_leave(connection: StoreConnection):
    calls = [asyncio.create_task(put(connection, f"n{number}", b"%d" % number)) for number in range(1000)]
    for number, call in enumerate(calls):
        if number % 7 == 3:
            asyncio.get_running_loop().call_later(number / 1e6, call.cancel)
    replies = await asyncio.gather(*calls, return_exceptions=True)
    kept = [(number, reply) for number, reply in enumerate(replies) if not isinstance(reply, asyncio.CancelledError)]
    assert len(kept) < 1000
    assert all(reply == b"%d" % number for number, reply in kept)


async def test_calls_of_one_tick_go_out_together_in_their_order(connection: StoreConnection, server: RedisServer):
    await put(connection, "first")
    before = await command(server, "INFO", "stats")
    await asyncio.gather(*(put(connection, "same", b"%d" % number) for number in range(200)))
    after = await command(server, "INFO", "stats")
    assert await connection.call("shelf_list", (KEY,)) == [b"first", b"v", b"same", b"199"]
    assert _stat(after, "total_reads_processed") - _stat(before, "total_reads_processed") < 20


def _stat(info: object, name: str) -> int:
    return next(int(line.split(":")[1]) for line in _text(info).decode().splitlines() if line.startswith(name))


async def test_the_library_comes_back_with_a_server_that_lost_it(connection: StoreConnection, server: RedisServer):
    await put(connection, "n")
    await server.kill()
    await server.start()
    assert await put(connection, "n", b"again") == b"again"
    await command(server, "FUNCTION", "FLUSH")
    await command(server, "FLUSHALL")
    assert await asyncio.gather(*(put(connection, f"n{number}") for number in range(50))) == [b"v"] * 50


async def test_a_server_that_is_gone_is_told_soon_and_found_when_it_is_back(connection: StoreConnection, server: RedisServer):
    await put(connection, "n")
    await server.kill()
    started = time.monotonic()
    for _ in range(3):
        with pytest.raises(StoreDown, match="cannot be reached") as down:
            await put(connection, "n")
        assert down.value.retry_after_s > 0
    assert time.monotonic() - started < 3 * TIMEOUT_S
    await server.start()
    assert await put(connection, "n", b"back") == b"back"


async def test_a_server_that_hangs_costs_no_more_than_the_time_of_a_call(connection: StoreConnection, server: RedisServer):
    await put(connection, "n")
    server.signal(signal.SIGSTOP)
    started = time.monotonic()
    try:
        answers = await asyncio.gather(*(put(connection, f"n{number}") for number in range(100)), return_exceptions=True)
        assert all(isinstance(answer, StoreDown) for answer in answers)
        assert time.monotonic() - started < TIMEOUT_S + 0.5
        with pytest.raises(StoreDown):
            await put(connection, "n")
        assert time.monotonic() - started < 2 * (TIMEOUT_S + 0.5)
    finally:
        server.signal(signal.SIGCONT)
    async with asyncio.timeout(10):
        while True:
            try:
                assert await put(connection, "after", b"own reply") == b"own reply"
                break
            except StoreDown:
                continue


async def test_a_full_queue_refuses(connection: StoreConnection, server: RedisServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sessions.store.lane.LONGEST_QUEUE", 10)
    answers = await asyncio.gather(*(put(connection, f"n{number}") for number in range(15)), return_exceptions=True)
    assert answers[:10] == [b"v"] * 10
    assert all(isinstance(answer, StoreDown) and "waiting" in str(answer) for answer in answers[10:])


async def test_a_stopped_server_ends_a_blocking_read(connection: StoreConnection, server: RedisServer):
    reading = asyncio.create_task(connection.read_stream("{admission}:news:a", "0", 0.2))
    await command(server, "PING")
    server.signal(signal.SIGSTOP)
    try:
        with pytest.raises(StoreDown):
            await reading
    finally:
        server.signal(signal.SIGCONT)


async def test_a_blocking_read_may_take_longer_than_a_call(connection: StoreConnection, server: RedisServer):
    key = "{admission}:news:a"
    reading = asyncio.create_task(connection.read_stream(key, "0", 30))
    calls_meanwhile = [await put(connection, "n") for _ in range(10)]
    assert calls_meanwhile == [b"v"] * 10
    await asyncio.sleep(TIMEOUT_S * 1.2)  # longer than the read timeout of calls: the time is what is tested
    assert not reading.done()
    await command(server, "XADD", key, "5-1", "news", "x")
    assert await reading == [("5-1", {b"news": b"x"})]
    assert await connection.read_stream(key, "5-1", 0.01) == []


async def test_a_blocking_read_is_told_that_its_server_has_become_a_replica(connection: StoreConnection, server: RedisServer):
    key = "{admission}:news:a"
    reading = asyncio.create_task(connection.read_stream(key, "0", 30))
    await put(connection, "n")
    await command(server, "REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreDown, match="replica"):
        await reading
    await command(server, "REPLICAOF", "NO", "ONE")
    await command(server, "XADD", key, "5-1", "news", "x")
    assert await connection.read_stream(key, "0", 1) == [("5-1", {b"news": b"x"})]


async def test_a_blocking_read_that_is_cancelled_leaves_nothing_behind(connection: StoreConnection, server: RedisServer):
    key = "{admission}:news:a"
    for _ in range(20):
        reading = asyncio.create_task(connection.read_stream(key, "0", 30))
        await put(connection, "n")
        reading.cancel()
        await asyncio.wait([reading])
    await command(server, "XADD", key, "5-1", "news", "x")
    assert await connection.read_stream(key, "0", 1) == [("5-1", {b"news": b"x"})]
    assert _text(await command(server, "CLIENT", "LIST")).count(b"cmd=xread") <= 1


async def test_a_full_server_takes_no_writes_and_lets_go_of_what_it_has(tmp_path: Path):
    async with running_redis(tmp_path, "--maxmemory", "3mb") as server, connected(parse(server.url)) as connection:
        calls = (put(connection, f"n{number}", bytes(100_000)) for number in range(100))
        refused = [reply for reply in await asyncio.gather(*calls, return_exceptions=True) if reply != bytes(100_000)]
        assert refused
        assert all(isinstance(reply, StoreDown) and "memory" in str(reply) for reply in refused)
        assert await connection.call("shelf_list", (KEY,)) != []
        assert await connection.call("shelf_remove", (KEY,), ("n0",)) == 1


@pytest.mark.parametrize(
    ("limit", "policy", "warned"), [("4mb", "allkeys-lru", 1), ("0", "allkeys-lru", 0), ("4mb", "noeviction", 0)]
)
async def test_a_server_that_is_set_up_as_a_cache_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, limit: str, policy: str, warned: int
):
    async with (
        running_redis(tmp_path, "--maxmemory", limit, "--maxmemory-policy", policy) as server,
        connected(parse(server.url)),
    ):
        pass
    assert caplog.text.count(f"(maxmemory-policy {policy}): set it to noeviction") == warned


NEEDED = ("+@read", "+@write", "+@scripting", "+info", "+time", "~*")


async def as_user(server: RedisServer, *rules: str) -> None:
    await command(server, "ACL", "SETUSER", "us", "reset", "on", ">pw", *rules)
    async with open_store(server.url.replace("//", "//us:pw@"), 0.0) as store:
        await store.order("a", Order("yield", "sess_1"))
        assert (await store.news("a", "0", 1.0))[1]
        await store.put("api_keys", "k", b"v")
        assert await store.incarnation() > 0


async def test_a_user_needs_no_more_rights_than_is_said(server: RedisServer):
    for missing in NEEDED:  # as long as none has read the server's run id, which needs +info
        with pytest.raises(StoreDown, match=re.escape(" ".join(NEEDED))):
            await as_user(server, *(rule for rule in NEEDED if rule != missing))
    await as_user(server, *NEEDED)


async def test_a_server_that_loads_its_data_is_told_as_such(tmp_path: Path):
    slowly = ("--key-load-delay", "4000", "--loading-process-events-interval-bytes", "1024")
    async with running_redis(tmp_path) as server, connected(parse(server.url)) as connection:
        for number in range(300):
            await connection.call("shelf_put", (f"{{shelves}}:{number}",), ("n", bytes(100), 0))
        await command(server, "SAVE")
        await server.kill()
        starting = asyncio.create_task(server.start(*slowly))
        reasons: set[str] = set()
        while not starting.done():
            try:
                await put(connection, "n")
            except StoreDown as down:
                reasons.add(str(down))
        await starting
        assert await connection.call("shelf_list", ("{shelves}:299",)) == [b"n", bytes(100)]
    assert any("loading" in reason for reason in reasons)


async def test_a_server_that_was_made_a_replica_says_so(connection: StoreConnection, server: RedisServer):
    await put(connection, "n")
    await command(server, "CONFIG", "SET", "replica-serve-stale-data", "no")
    await command(server, "REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreDown, match="takes no writes"):
        await put(connection, "n")
    with pytest.raises(StoreDown, match="lost its primary"):
        await connection.call("shelf_list", (KEY,))
    await command(server, "REPLICAOF", "NO", "ONE")
    assert await put(connection, "n", b"again") == b"again"


def _text(reply: object) -> bytes:
    assert isinstance(reply, bytes)
    return reply


SECRET = "s3cr:et/@x"


@pytest.mark.parametrize("given", [SECRET, "wr0ng", ""])
async def test_no_password_is_shown(tmp_path: Path, given: str, caplog: pytest.LogCaptureFixture):
    async with running_redis(tmp_path, "--requirepass", SECRET) as server:
        quoted = given.replace(":", "%3A").replace("/", "%2F").replace("@", "%40")
        address = parse(f"redis://:{quoted}@127.0.0.1:{server.port}/0")
        shown = [str(address), repr(address)]
        try:
            async with connected(address) as connection:
                assert await put(connection, "n") == b"v"
                shown.append(repr(connection))
                assert given == SECRET
        except StoreDown as down:
            assert given != SECRET
            shown += [str(down), repr(down), repr(down.__cause__)]
    for text in (*shown, caplog.text):
        assert SECRET not in text
        assert quoted == "" or quoted not in text


async def test_nobody_there_is_told_at_once(tmp_path: Path):
    server = RedisServer(tmp_path)
    url = server.url.replace("//", "//us:s3cret@")
    with pytest.raises(StoreDown, match=f"now: redis://127.0.0.1:{server.port}: it cannot be reached$"):
        async with connected(parse(url)):
            pass


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno == logging.ERROR]


async def test_a_mistake_of_ours_ends_nobody_and_is_seen_in_the_log(
    connection: StoreConnection, caplog: pytest.LogCaptureFixture
):
    with pytest.raises(StoreDown, match="in the log"):
        await connection.call("shelf_put", (KEY,), ())
    assert "Lua" in "".join(errors(caplog))
    assert await put(connection, "n") == b"v"


UNKNOWN = "unknown command 'FCALL', with args beginning with: 'shelf_put' 's3cret'"


@pytest.mark.parametrize(
    ("error", "why", "logged"),
    [
        (ResponseError("DENIED Redis is running in protected mode"), "protected mode", False),
        (ResponseError("Error running script: Script killed by user with FUNCTION KILL."), "killed our Function", False),
        (ResponseError("NEWWORD of a later version"), r"\(NEWWORD\)", True),
        (ResponseError(UNKNOWN), r"\(ERR\)", True),
        (InvalidResponse("Protocol Error: b'?'"), "not the protocol", False),
        (MovedError("12 10.0.0.1:6379"), "slot has moved", False),
        (DataError("Invalid input of type: 'dict'"), "in the log", True),
    ],
)
def test_whatever_the_server_says_is_a_failure_that_may_pass(
    error: RedisError, why: str, logged: bool, caplog: pytest.LogCaptureFixture
):
    assert re.search(why, str(store_down(error)))
    assert len(errors(caplog)) == logged
    assert "s3cret" not in caplog.text


def test_a_store_in_trouble_does_not_fill_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    clock = Clock()
    monkeypatch.setattr(failures, "errors", SparseLog(logging.getLogger(failures.__name__), clock))
    for number in range(80):
        store_down(ResponseError(f"NEWWORD about {{sess_{number}a}}:x"))
        failures.not_understood(ValueError("Expected `int`, got `str`"))
        clock.now_s += 1 / 16
    assert [line.partition(",")[0] for line in errors(caplog)] == [
        "the session store refused a call",
        "a reply of the session store is not understood: Expected `int`",
    ]
    caplog.clear()
    clock.now_s += PERIOD_S / 2
    store_down(ResponseError("NEWWORD about {sess_7b}:x"))
    (line,) = errors(caplog)
    assert "sess_7b" in line
    assert "79 more of this kind" in line


def test_an_error_that_is_another_each_time_does_not_fill_log_or_memory(caplog: pytest.LogCaptureFixture):
    words = SparseLog(logging.getLogger(failures.__name__), Clock())
    for number in range(1_000):
        words.error("x" * (number + 1))
    assert len(errors(caplog)) == MOST_CAUSES + 1


async def test_a_reply_of_another_shape_is_a_failure_that_may_pass(
    connection: StoreConnection, server: RedisServer, caplog: pytest.LogCaptureFixture
):
    store = RedisAdmission(connection, 0.0)
    await store.renew("box-1", 10.0)
    brought = Announcement(node="box-1", host="box", address="", ready=True, draining=False, capacity={})
    ours = library()
    odd = "".join(
        f"redis.register_function('{ours.function(name)}', function() return 'odd' end)\n"
        for name in ("renew", "announce", "ask")
    )
    await command(server, "FUNCTION", "LOAD", "REPLACE", f"#!lua name=antiphon_{ours.version}\n{odd}")
    for call in (store.renew("box-1", 10.0), store.announce(brought)):
        with pytest.raises(StoreDown, match="not understood"):
            await call
        assert len(errors(caplog)) == 1
        caplog.clear()
        failures.errors = SparseLog(logging.getLogger(failures.__name__))


async def test_news_that_nobody_here_understands_keep_no_others_away(
    connection: StoreConnection, server: RedisServer, caplog: pytest.LogCaptureFixture
):
    store = RedisAdmission(connection, 0.0)
    await command(server, "XADD", "{admission}:news:a", "5-1", "news", "what?")
    await store.order("a", Order("yield", "sess_1"))
    _, news = await store.news("a", "0", 1.0)
    assert news == (Order("yield", "sess_1"),)
    assert len(errors(caplog)) == 1
