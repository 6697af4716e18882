"""Who a request is: each form of a key, what it may do, and what becomes of wrong ones."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import quote

import aiohttp
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fakes.doors import Door
from fakes.edge import Edge, ServeEdge, edge_context, serving
from fakes.graph import FakeGraph
from fakes.hostile import HOSTILE, ODD
from realtime.failed_attempts import AT_ONCE, MOST_ADDRESSES, FailedAttempts
from sessions.identity.client_secrets import Wish
from sessions.identity.key_ring import Grant
from sessions.identity.principal import Scope
from sessions.identity.shelf_view import FRESH_S, STALE_S

KEY = "hush-hush"
QUICK_S = 2.0
"""A bound, not a bar: nothing that is refused takes work."""


def bearing(key: str, scheme: str = "Bearer") -> dict[str, str]:
    return {"Authorization": f"{scheme} {key}"}


async def asked(edge: Edge, headers: Mapping[str, str], path: str = "/v1/models", method: str = "GET") -> tuple[int, str]:
    """Status and code."""
    async with edge.http.request(method, edge.url + path, headers=headers) as answer:
        return answer.status, (await answer.json())["error"]["code"] if answer.status >= 400 else ""


async def handshake(edge: Edge, headers: Mapping[str, str], protocols: tuple[str, ...] = ()) -> int:
    try:
        async with edge.socket(headers=headers, protocols=protocols) as client:
            await client.until("session.created")
            return 101
    except aiohttp.WSServerHandshakeError as refused:
        return refused.status


@asynccontextmanager
async def door_with_keys() -> AsyncGenerator[tuple[Door, tuple[str, ...]]]:
    """One key of each sort."""
    door = Door(KEY)
    made = await door.ring.create(Grant(tenant="acme"))
    secret, _ = await door.secrets.make(
        await door.credentials.principal(made.text), Wish(seconds=600, scopes=frozenset((Scope.SESSIONS, Scope.REST)))
    )
    yield door, (KEY, made.text, secret)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Api-Key", "api-key"])
async def test_every_sort_of_key_in_every_form(serve_edge: ServeEdge, scheme: str) -> None:
    async with door_with_keys() as (door, keys):
        edge = await serve_edge(door=door)
        for key in keys:
            assert await asked(edge, bearing(key, scheme)) == (200, "")
            assert await handshake(edge, bearing(key, scheme)) == 101
            assert await handshake(edge, {}, ("realtime", f"openai-insecure-api-key.{key}")) == 101
            assert await handshake(edge, {}, ("realtime", f"openai-insecure-api-key.{key}", "openai-agents-sdk.1.0")) == 101
            assert (await asked(edge, bearing(key + "x", scheme)))[0] == 401
            assert (await asked(edge, bearing(key[:-1], scheme)))[0] == 401


async def test_no_form_of_no_key_is_in_any_log(serve_edge: ServeEdge, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with door_with_keys() as (door, keys):
        edge = await serve_edge(door=door)
        for key in keys:
            for given_key in (key, key + "x", key[:-1]):
                for scheme in ("Bearer", "Api-Key", "Basic"):
                    await asked(edge, bearing(given_key, scheme))
                    await asked(edge, bearing(given_key, scheme), "/v1/nothing")
                await handshake(edge, bearing(given_key))
                await handshake(edge, {}, ("realtime", f"openai-insecure-api-key.{given_key}"))
                await handshake(edge, {}, (f"openai-insecure-api-key.{given_key}",))
        door.shelves.down = True
        door.now_s += STALE_S + 1
        for key in keys:
            await asked(edge, bearing(key))
        for key in keys:
            assert key[3:-1] not in caplog.text


@pytest.mark.parametrize(
    ("scope", "path", "method", "status"),
    [
        (Scope.REST, "/v1/models", "GET", 200),
        (Scope.REST, "/v1/audio/speech", "POST", 400),
        (Scope.REST, "/v1/realtime", "GET", 403),
        (Scope.REST, "/v1/realtime/calls", "POST", 403),
        (Scope.REST, "/v1/realtime/calls/rtc_1", "DELETE", 403),
        (Scope.REST, "/v1/realtime/client_secrets", "POST", 403),
        (Scope.REST, "/v1/realtime%2Fcalls", "POST", 403),
        (Scope.REST, "/v1/%72ealtime/calls", "POST", 403),
        (Scope.REST, "/v1/admin/sessions", "GET", 403),
        (Scope.REST, "/v1/admin/nothing", "GET", 403),
        (Scope.SESSIONS, "/v1/models", "GET", 200),
        (Scope.SESSIONS, "/v1/realtime/calls", "POST", 415),
        (Scope.SESSIONS, "/v1/audio/speech", "POST", 403),
        (Scope.SESSIONS, "/%76%31/audio/speech", "POST", 403),
        (Scope.SESSIONS, "/v1/nothing", "GET", 403),
        (Scope.SESSIONS, "/v1/admin/nodes", "GET", 403),
        (Scope.ADMIN, "/v1/models", "GET", 403),
        (Scope.ADMIN, "/v1/realtime", "GET", 403),
    ],
)
async def test_a_key_does_what_its_scopes_allow(serve_edge: ServeEdge, scope: Scope, path: str, method: str, status: int) -> None:
    door = Door()
    key = await door.ring.create(Grant(tenant="acme", scopes=frozenset((scope,))))
    edge = await serve_edge(door=door)
    assert (await asked(edge, bearing(key.text), path, method))[0] == status


async def test_a_key_for_one_model_asks_no_other(serve_edge: ServeEdge) -> None:
    door = Door()
    key = await door.ring.create(Grant(tenant="acme", models=frozenset(("smollm2",))))
    edge = await serve_edge(door=door)
    for path, model, status in (
        ("chat/completions", "antiphon-voice", 403),
        ("audio/speech", "kokoro", 403),
        ("chat/completions", "x", 404),
    ):
        body = {"model": model, "input": "Hello", "messages": [{"role": "user", "content": "Hello"}]}
        async with edge.http.post(f"{edge.url}/v1/{path}", json=body, headers=bearing(key.text)) as answer:
            assert answer.status == status, await answer.text()


async def test_keys_for_sessions_make_no_requests(serve_edge: ServeEdge) -> None:
    door = Door()
    key = await door.ring.create(Grant(tenant="acme", kinds=frozenset(("voice",))))
    edge = await serve_edge(door=door)
    body = {"model": "kokoro", "input": "Hello"}
    async with edge.http.post(f"{edge.url}/v1/audio/speech", json=body, headers=bearing(key.text)) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (403, "kind_not_allowed")
    assert await handshake(edge, bearing(key.text)) == 101


async def test_a_key_that_is_revoked_is_refused_soon(serve_edge: ServeEdge) -> None:
    door = Door()
    key = await door.ring.create(Grant(tenant="acme"))
    edge = await serve_edge(door=door)
    assert await handshake(edge, bearing(key.text)) == 101
    await door.ring.revoke(key.key_id)
    door.now_s += FRESH_S + 0.01
    assert await handshake(edge, bearing(key.text)) == 401


async def test_while_nobody_knows_the_keys_the_server_says_when_to_try_again(serve_edge: ServeEdge) -> None:
    door = Door()
    edge = await serve_edge(door=door)
    door.shelves.down = True
    async with edge.http.get(f"{edge.url}/v1/models") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        assert (await answer.json())["error"]["code"] == "store_down"
    assert await handshake(edge, {}) == 503
    async with edge.http.get(f"{edge.url}/healthz") as answer:
        assert answer.status == 200


async def test_guesses_are_few(serve_edge: ServeEdge) -> None:
    now_s = 1_000.0
    edge = await serve_edge(api_key=KEY, clock=lambda: now_s)
    for number in range(AT_ONCE):
        assert await asked(edge, bearing(f"guess{number}")) == (401, "invalid_api_key")
    async with edge.http.get(f"{edge.url}/v1/models", headers=bearing("one-more")) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert (await answer.json())["error"]["type"] == "rate_limit_error"
    assert await asked(edge, bearing(KEY)) == (429, "too_many_attempts")  # or a guess would be known by its answer
    assert await handshake(edge, bearing(KEY)) == 429
    now_s += 1.0
    assert await asked(edge, bearing(KEY)) == (200, "")


async def test_keys_that_nobody_guesses_are_not_held_up(serve_edge: ServeEdge) -> None:
    door = Door(KEY)
    key = await door.ring.create(Grant(tenant="acme"))
    edge = await serve_edge(door=door)
    for number in range(AT_ONCE + 1):
        await asked(edge, bearing(f"guess{number}"))
    assert (await asked(edge, bearing(KEY)))[0] == 429
    assert await asked(edge, bearing(key.text)) == (200, "")


def test_an_address_waits_for_itself_alone() -> None:
    attempts = FailedAttempts()
    for _ in range(AT_ONCE + 4):
        attempts.failed("192.0.2.1", 0.0)
        attempts.failed("2001:db8::1", 0.0)
    assert attempts.wait_s("192.0.2.1", 0.0) == 5.0
    assert attempts.wait_s("192.0.2.1", 4.5) == 0.5
    assert attempts.wait_s("192.0.2.1", 5.0) == 0.0
    assert attempts.wait_s("192.0.2.2", 0.0) == 0.0
    assert attempts.wait_s("2001:db8::ffff", 0.0) == 5.0
    assert attempts.wait_s("2001:db8:0:1::1", 0.0) == 0.0


def test_addresses_do_not_pile_up() -> None:
    attempts = FailedAttempts()
    for _ in range(AT_ONCE):
        attempts.failed("192.0.2.1", 0.0)
    assert attempts.wait_s("192.0.2.1", 0.0) > 0
    for number in range(MOST_ADDRESSES):
        attempts.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0.0)
    assert attempts.wait_s("192.0.2.1", 0.0) == 0


async def raw(url: str, head: bytes) -> int | None:
    """The status that these bytes are answered with; None: the connection was closed without."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
    try:
        writer.write(head)
        words = (await reader.readline()).split()
        return int(words[1]) if words else None
    except ConnectionError:
        return None
    finally:
        writer.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(key=HOSTILE, before=st.sampled_from(["", "ak_", "ek_", "ek_w1."]), form=st.sampled_from(["Bearer", "Api-Key", "offer"]))
@example(key="\udcff", before="ek_", form="Bearer")
async def test_what_is_no_key_is_refused_at_once_and_not_logged(
    caplog: pytest.LogCaptureFixture, key: str, before: str, form: str
) -> None:
    caplog.set_level(logging.INFO)
    given_key = (before + key).replace("\r", "").replace("\n", "").encode(errors="surrogateescape")
    line = b"Authorization: " + form.encode() + b" " + given_key
    if form == "offer":
        line = b"Sec-WebSocket-Protocol: realtime, openai-insecure-api-key." + given_key
    async with serving(edge_context(FakeGraph(), api_key=KEY)) as url:
        started = time.monotonic()
        status = await raw(url, b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + line + b"\r\n\r\n")
        assert time.monotonic() - started < QUICK_S
    assert status in (401, 400, None)
    assert len(key) < 20 or key not in caplog.text
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(call_id=st.one_of(ODD, st.text(max_size=300), st.just("x" * 7_000)))
async def test_what_is_no_call_is_not_found_whosever_it_is(call_id: str) -> None:
    async with serving(edge_context(FakeGraph(), api_key=KEY)) as url:
        path = f"/v1/realtime/calls/{quote(call_id, safe='', errors='surrogatepass')}/hangup"
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\nAuthorization: Bearer "
        assert await raw(url, f"{head}{KEY}\r\n\r\n".encode()) in (404, 400)
        assert await raw(url, f"{head}wrong\r\n\r\n".encode()) in (401, 400)
