"""Payloads over TCP: what they cost in memory, and what peers that misbehave can do."""

import asyncio
import socket

import numpy as np
import pytest

from engines.connectors import PayloadLost, PayloadTooLarge
from engines.connectors.contents import Inline, Key, Outline, Place, Remote
from engines.connectors.fetching import REPLY, REQUEST, Wanted, answer, ask, wanted
from engines.connectors.peer import MOST_CONNECTIONS
from engines.connectors.tcp import NAME, TcpConnector
from engines.network.door import MOST_GUESTS
from engines.network.handshake import Purpose, dial
from engines.network.raw_connection import RawConnection
from engines.payloads import Array, Payload
from fakes.payload_door import SECRET, impostor, producer

KEY = Key("gateway#0/r/0/stage", 0)


def large(nbytes: int = 1 << 20, fill: int = 7) -> Payload:
    frames = np.full(nbytes // 4, fill, np.float32).reshape(2, -1)
    return Payload("words", {"frames": Array.of(frames), "mask": Array.of(np.arange(5))}, {"rate": 24_000})


def same(one: Payload, other: Payload) -> bool:
    arrays = zip(one.arrays.values(), other.arrays.values(), strict=True)
    return (one.text, one.attributes, list(one.arrays)) == (other.text, other.attributes, list(other.arrays)) and all(
        np.array_equal(a.numpy(), b.numpy()) for a, b in arrays
    )


def consumer(secret: bytes = SECRET) -> TcpConnector:
    return TcpConnector(None, secret)


def remote(place: object, nbytes: int = 1 << 20) -> Remote:
    return Remote(Outline(KEY, {"a": Place("uint8", (nbytes,), 0, nbytes)}), NAME, f"{place}/0123456789abcdef")


async def test_a_payload_waits_at_its_producer_and_arrives_whole() -> None:
    async with producer() as (at_home, _):
        content = at_home.put(KEY, large(20 << 20))
        assert isinstance(content, Remote)
        elsewhere = consumer()
        assert same(await elsewhere.get(content), large(20 << 20))
        assert same(await elsewhere.get(content), large(20 << 20))
        assert same(await at_home.get(content), large(20 << 20))
        assert (at_home.health(), elsewhere.health()) == ("", "")
        elsewhere.close()


async def test_many_fetches_at_once_do_not_mix() -> None:
    async with producer() as (at_home, _):
        contents = [at_home.put(Key("s", seq), large(1 << 18, seq)) for seq in range(40)]
        elsewhere = consumer()
        fetched = await asyncio.gather(*(elsewhere.get(content) for content in contents))
        assert all(same(payload, large(1 << 18, seq)) for seq, payload in enumerate(fetched))
        elsewhere.close()


BLANK = Payload(arrays={"a": Array.of(np.zeros(1 << 20, np.uint8))})


async def test_a_consumer_has_few_connections_and_closes_those_that_it_does_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.connectors.peer.KEPT_S", 0.01)
    opened = closed = 0
    crowded, deserted = asyncio.Event(), asyncio.Event()

    async def serve(connection: RawConnection) -> None:
        nonlocal opened, closed
        opened += 1
        if opened == MOST_CONNECTIONS:
            crowded.set()
        while request := await wanted(connection):
            await crowded.wait()
            await answer(connection, request.key, BLANK)
        closed += 1
        if closed == opened:
            deserted.set()

    async with impostor(serve) as place:
        elsewhere = consumer()
        await asyncio.gather(*(elsewhere.get(remote(place)) for _ in range(12)))
        assert opened == MOST_CONNECTIONS
        await deserted.wait()


async def test_what_is_forgotten_or_of_another_life_is_lost() -> None:
    async with producer() as (at_home, _), producer() as (other, _):
        content, foreign = at_home.put(KEY, large()), other.put(KEY, large())
        assert isinstance(content, Remote)
        assert isinstance(foreign, Remote)
        place, _, _ = content.address.rpartition("/")
        stale = Remote(content.outline, NAME, f"{place}/{foreign.address.rpartition('/')[2]}")
        elsewhere = consumer()
        with pytest.raises(PayloadLost, match="does not have it"):
            await elsewhere.get(stale)
        assert at_home.cleanup(KEY.scope) == 1
        with pytest.raises(PayloadLost, match="does not have it"):
            await elsewhere.get(content)
        elsewhere.close()


async def test_what_is_being_sent_may_be_forgotten_meanwhile() -> None:
    async with producer() as (at_home, place):
        content = at_home.put(KEY, Payload(arrays={"a": Array.of(np.full(64 << 20, 5, np.uint8))}))
        assert isinstance(content, Remote)
        slow = await dial(place, SECRET, Purpose.PAYLOADS)
        await ask(slow, Wanted(content.address.rpartition("/")[2], KEY))
        await slow.read(REPLY.size)
        assert at_home.cleanup(KEY.scope) == 1
        received = np.empty(64 << 20, np.uint8)
        await slow.fill(received.data)
        assert np.all(received == 5)
        slow.close()


async def test_beyond_its_limit_payloads_travel_inline_until_they_are_too_large_for_that() -> None:
    async with producer(limit_bytes=3 << 20) as (at_home, _):
        kept = at_home.put(Key("s", 0), large(2 << 20))
        assert isinstance(kept, Remote)
        assert isinstance(at_home.put(Key("s", 1), large(2 << 20)), Inline)
        with pytest.raises(PayloadTooLarge, match="can be carried"):
            at_home.put(Key("s", 2), large(40 << 20))
        assert at_home.cleanup("s", before=1) == 1
        assert isinstance(at_home.put(Key("s", 3), large(2 << 20)), Remote)
        assert at_home.holds("s") == 1


async def test_a_producer_that_is_gone_is_known_at_once() -> None:
    async with producer() as (at_home, _):
        content = at_home.put(KEY, large())
    elsewhere = consumer()
    async with asyncio.timeout(1):
        with pytest.raises(PayloadLost, match="Connect call failed"):
            await elsewhere.get(content)
    assert "tcp://127.0.0.1" in elsewhere.health()


async def test_a_producer_that_has_no_room_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST_GUESTS, Purpose.PAYLOADS, 1)
    async with producer() as (at_home, place):
        content = at_home.put(KEY, large())
        guest, elsewhere = await dial(place, SECRET, Purpose.PAYLOADS), consumer()
        refused = asyncio.Event()

        def note(_: str) -> None:
            refused.set()

        monkeypatch.setattr(elsewhere.faults, "note", note)
        fetched = asyncio.create_task(elsewhere.get(content))
        await refused.wait()
        guest.close()
        assert same(await fetched, large())
        elsewhere.close()


async def test_what_replaces_a_payload_takes_no_more_room() -> None:
    async with producer(limit_bytes=3 << 20) as (at_home, _):
        for fill in range(9):
            assert isinstance(at_home.put(KEY, large(1 << 20, fill)), Remote)
        assert same(await at_home.get(at_home.put(KEY, large(1 << 20, 9))), large(1 << 20, 9))
        assert isinstance(at_home.put(Key("s", 0), large(1 << 20)), Remote)
        assert isinstance(at_home.put(Key("s", 1), large(2 << 20)), Inline)


async def test_another_secret_gets_nothing_and_both_sides_say_so() -> None:
    async with producer() as (at_home, _):
        content = at_home.put(KEY, large())
        stranger, friend = consumer(b"another secret of 16+"), consumer()
        with pytest.raises(PayloadLost, match="another secret"):
            await stranger.get(content)
        assert "another secret" in at_home.health()
        assert same(await friend.get(content), large())
        friend.close()


async def test_faults_are_forgotten_after_a_while() -> None:
    now = 0.0
    async with producer(clock=lambda: now) as (at_home, _):
        content = at_home.put(KEY, large())
        for _ in range(2):
            with pytest.raises(PayloadLost):
                await consumer(b"another secret of 16+").get(content)
        assert "2 faults" in at_home.health()
        now = 61.0
        assert at_home.health() == ""


async def replying(connection: RawConnection, raw: bytes) -> None:
    await wanted(connection)
    await connection.send(raw)


GOOD_REPLY = REPLY.pack(b"AnPl", True, 1 << 20, 0)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "closed by the other side"),
        (b"AnP", "after 3 of"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no reply"),
        (GOOD_REPLY, "no reply"),
    ],
)
async def test_a_reply_that_is_none_costs_that_payload_only(raw: bytes, reason: str) -> None:
    async with impostor(lambda connection: replying(connection, raw)) as place, producer() as (at_home, _):
        elsewhere = consumer()
        with pytest.raises(PayloadLost, match=reason):
            await elsewhere.get(remote(place))
        assert reason in elsewhere.health()
        assert same(await elsewhere.get(at_home.put(KEY, large())), large())
        elsewhere.close()


async def test_a_reply_of_another_size_is_refused_before_a_byte_of_it_is_read() -> None:
    async def lie(connection: RawConnection) -> None:
        request = await wanted(connection)
        assert request is not None
        await answer(connection, request.key, large(1 << 20))

    async with impostor(lie) as place:
        with pytest.raises(PayloadLost, match="announced"):
            await consumer().get(remote(place, 1 << 19))


async def test_a_body_that_is_cut_is_lost() -> None:
    async def cut(connection: RawConnection) -> None:
        request = await wanted(connection)
        assert request is not None
        sending = asyncio.create_task(
            answer(connection, request.key, Payload(arrays={"a": Array.of(np.zeros(64 << 20, np.uint8))}))
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])

    async with impostor(cut) as place:
        with pytest.raises(PayloadLost, match="after"):
            await consumer().get(remote(place, 64 << 20))


async def test_a_producer_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.connectors.tcp.PATIENCE_S", 0.05)
    silence = asyncio.Event()
    async with impostor(lambda _: _until(silence)) as place:
        with pytest.raises(PayloadLost, match="did not send"):
            await consumer().get(remote(place))


async def _until(event: asyncio.Event) -> None:
    await event.wait()


DEEP = b"\x93\xa5token\x92\xa1s\x01" + b"\x91" * 60_000 + b"\xc0"
"""A request with one field more than there are, nested deeper than a decoder goes."""


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "which is no request"),
        (REQUEST.pack(b"AnPl", 1 << 30), "a length of 1073741824, which is no request"),
        (REQUEST.pack(b"AnPl", 3) + b"\xff\xff\xff", "a request that cannot be read"),
        (REQUEST.pack(b"AnPl", len(DEEP)) + DEEP, "a request that cannot be read"),
        (b"An", "closed by the other side after 2 of 8 bytes"),
    ],
)
async def test_a_consumer_that_talks_nonsense_is_dropped_and_reported(raw: bytes, reason: str) -> None:
    async with producer() as (at_home, place):
        content = at_home.put(KEY, large())
        connection = await dial(place, SECRET, Purpose.PAYLOADS)
        await connection.send(raw)
        connection.socket.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionError):
            await connection.read(1)
        connection.close()
        assert reason in at_home.health()
        elsewhere = consumer()
        assert same(await elsewhere.get(content), large())
        elsewhere.close()


async def test_a_connection_that_its_producer_has_closed_is_not_used_again() -> None:
    elsewhere = consumer()
    async with producer() as (at_home, place):
        assert same(await elsewhere.get(at_home.put(KEY, large())), large())
    async with producer(at=place) as (successor, _):
        assert same(await elsewhere.get(successor.put(KEY, large(fill=8))), large(fill=8))
    elsewhere.close()


async def test_a_consumer_that_reads_nothing_is_dropped_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = asyncio.Event()
    monkeypatch.setattr("engines.connectors.tcp.PATIENCE_S", 1.0)
    monkeypatch.setattr("engines.connectors.tcp.SLOWEST_BYTES_S", 1 << 40)
    async with producer(on_fault=dropped.set) as (at_home, place):
        content = at_home.put(KEY, large(64 << 20))
        assert isinstance(content, Remote)
        lazy = await dial(place, SECRET, Purpose.PAYLOADS)
        await ask(lazy, Wanted(content.address.rpartition("/")[2], KEY))
        await lazy.read(REPLY.size)
        elsewhere = consumer()
        assert same(await elsewhere.get(at_home.put(Key("s", 1), large())), large())
        assert not dropped.is_set()
        await dropped.wait()
        assert "took too long" in at_home.health()
        elsewhere.close()
        lazy.close()


async def test_an_outline_that_contradicts_itself_is_lost() -> None:
    async with producer() as (at_home, _):
        content = at_home.put(KEY, large())
        assert isinstance(content, Remote)
        for place in (
            Place("float32", (3,), 0, 13),
            Place("nonsense", (3,), 0, 3),
            Place("uint8", (-3,), 0, -3),
            Place("uint8", (1,), -9, 1),
        ):
            with pytest.raises(PayloadLost):
                await consumer().get(Remote(Outline(KEY, {"a": place}), NAME, content.address))


async def test_it_carries_nothing_after_its_end() -> None:
    async with producer() as (at_home, _):
        content = at_home.put(KEY, large())
        at_home.close()
        at_home.close()
        assert at_home.holds(KEY.scope) == 0
        with pytest.raises(PayloadLost, match="closed"):
            await at_home.get(content)
