"""Client secrets over the wire: minted by the stock client, carried by browsers and programs, refused with the right status."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import aiohttp
import openai
import pytest

from fakes.doors import Door
from fakes.edge import Edge, ServeEdge
from realtime.settings import ServerSettings
from sessions.identity.key_ring import Grant
from sessions.identity.principal import Scope
from sessions.identity.shelf_view import FRESH_S

PATH = "/v1/realtime/client_secrets"
APP = "https://app.example"


def bearing(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def minted(edge: Edge, key: str, **body: Any) -> str:
    async with edge.http.post(edge.url + PATH, json=body, headers=bearing(key)) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["Cache-Control"] == "no-store"
        return (await answer.json())["value"]


async def refused(edge: Edge, key: str, body: object, headers: Mapping[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    async with edge.http.post(edge.url + PATH, data=json.dumps(body), headers=bearing(key) | dict(headers or {})) as answer:
        return answer.status, (await answer.json())["error"]


async def created(
    edge: Edge, secret: str, path: str = "/v1/realtime", headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The session of a browser that bears `secret`."""
    protocols = ("realtime", f"openai-insecure-api-key.{secret}")
    async with edge.socket(path, headers=headers, protocols=protocols) as client:
        return (await client.until("session.created"))["session"]


async def status(edge: Edge, secret: str, path: str = "/v1/realtime", headers: Mapping[str, str] | None = None) -> int:
    try:
        await created(edge, secret, path, headers)
    except aiohttp.WSServerHandshakeError as no:
        return no.status
    return 101


async def test_the_stock_client_mints_one_and_talks_with_it(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(api_key="the-key")
    async with openai.AsyncOpenAI(base_url=f"{edge.url}/v1", api_key="the-key", max_retries=0) as stock:
        made = await stock.realtime.client_secrets.create(
            expires_after={"anchor": "created_at", "seconds": 60},
            session={
                "type": "realtime",
                "model": "antiphon-voice",
                "instructions": "Answer in verse.",
                "audio": {"output": {"voice": "heart"}, "input": {"turn_detection": None}},
            },
        )
    type(made).model_validate(made.model_dump(), strict=True)
    assert made.value.startswith("ek_")
    assert made.session.type == "realtime"
    assert made.session.instructions == "Answer in verse."
    assert made.session.id.startswith("sess_")
    async with (
        openai.AsyncOpenAI(base_url=f"{edge.url}/v1", api_key=made.value, max_retries=0) as browser,
        browser.realtime.connect(model="gpt-realtime") as connection,  # the secret names the model
    ):
        event = await connection.recv()
    assert event.type == "session.created"
    assert event.session.type == "realtime"
    assert event.session.instructions == "Answer in verse."
    assert event.session.model == "antiphon-voice"
    shown = event.session.model_dump()
    assert shown["audio"]["output"]["voice"] == "heart"
    assert shown["audio"]["input"]["turn_detection"] is None


async def test_nothing_need_be_said(serve_edge: ServeEdge) -> None:
    door = Door("the-key")
    edge = await serve_edge(door=door)
    async with edge.http.post(edge.url + PATH, json={}, headers=bearing("the-key")) as answer:
        made = await answer.json()
    assert made["expires_at"] == int(door.now_s) + 600
    assert (await created(edge, made["value"]))["instructions"] == "Be brief."


async def test_a_server_without_keys_makes_them_too(edge: Edge) -> None:
    secret = await minted(edge, "none", session={"type": "realtime", "instructions": "Hum."})
    assert (await created(edge, secret))["instructions"] == "Hum."
    assert await status(edge, secret[:-1]) == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"expires_after": {"anchor": "created_at", "seconds": 9}}, "expires_after.seconds"),
        ({"expires_after": {"anchor": "created_at", "seconds": 7_201}}, "expires_after.seconds"),
        ({"expires_after": {"anchor": "now"}}, "expires_after.anchor"),
        ({"session": {"type": "transcription"}}, "session.type"),
        ({"session": {"audio": {"output": {"voice": "nobody"}}}}, "session.audio.output.voice"),
        ({"session": {"audio": {"input": {"format": {"type": "audio/mp3"}}}}}, "session.audio.input.format"),
        ({"session": {"tools": [{"type": "function"}]}}, "session.tools"),
        ({"longest_session_s": "long"}, "longest_session_s"),
        ({"origins": [APP, "https://App.example/"]}, "origins[1]"),
    ],
)
async def test_what_is_wrong_is_named(edge: Edge, body: object, field: str) -> None:
    code, error = await refused(edge, "none", body)
    assert (code, error["param"]) == (400, field)


@pytest.mark.parametrize("longest_s", [0.001, 0.0, -1.0, 9.999, 86_400.5, 1e308])
async def test_a_session_that_would_end_at_once_or_never_is_refused_when_its_secret_is_made(edge: Edge, longest_s: float) -> None:
    code, error = await refused(edge, "none", {"longest_session_s": longest_s})
    assert (code, error["param"]) == (400, "longest_session_s")
    assert error["message"] == f"longest_session_s: expected 10 to 86400 seconds, got {longest_s}"


@pytest.mark.parametrize("longest_s", [10, 86_400])
async def test_a_secret_may_bound_the_life_of_its_sessions(edge: Edge, longest_s: float) -> None:
    assert await minted(edge, "none", longest_session_s=longest_s)


async def test_a_model_that_is_not_here_is_told(edge: Edge) -> None:
    code, error = await refused(edge, "none", {"session": {"type": "realtime", "model": "gpt-realtime"}})
    assert (code, error["code"]) == (404, "model_not_found")


async def test_instructions_that_no_header_could_carry_are_refused(edge: Edge) -> None:
    code, error = await refused(edge, "none", {"session": {"instructions": "".join(map(chr, range(300, 6_000)))}})
    assert (code, error["code"], error["param"]) == (400, "too_long", "session")


async def test_while_nobody_knows_with_what_to_sign_none_is_made(serve_edge: ServeEdge) -> None:
    door = Door("the-key")
    edge = await serve_edge(door=door)
    door.shelves.down = True
    code, error = await refused(edge, "the-key", {})
    assert (code, error["code"]) == (503, "store_down")


async def test_a_secret_is_for_its_sessions_alone(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(api_key="the-key")
    secret = await minted(edge, "the-key")
    async with edge.http.post(edge.url + "/v1/audio/speech", json={}, headers=bearing(secret)) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (403, "scope_not_allowed")
    code, error = await refused(edge, secret, {})
    assert (code, error["code"]) == (403, "key_needed")
    code, error = await refused(edge, "the-key", {"scopes": ["admin"]})
    assert (code, error["param"]) == (403, "scopes")


async def test_it_ends_when_it_expires_and_with_its_key(serve_edge: ServeEdge) -> None:
    door = Door()
    key = await door.ring.create(Grant(tenant="acme", scopes=frozenset((Scope.SESSIONS,))))
    edge = await serve_edge(door=door)
    secret = await minted(edge, key.text, expires_after={"anchor": "created_at", "seconds": 10})
    other = await minted(edge, key.text)
    assert await status(edge, secret) == 101
    door.now_s += 10
    assert await status(edge, secret) == 401
    assert await status(edge, other) == 101
    await door.ring.revoke(key.key_id)
    door.now_s += FRESH_S + 0.01
    assert await status(edge, other) == 401


async def test_it_is_for_the_pages_that_it_names(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(api_key="the-key", settings=ServerSettings(allowed_origins=("https://friend.example",)))
    secret = await minted(edge, "the-key", origins=[APP])
    assert await status(edge, secret, headers={"Origin": APP}) == 101
    assert await status(edge, secret, headers={"Origin": "https://friend.example"}) == 403
    assert await status(edge, secret, headers={"Origin": edge.url}) == 403
    anywhere = await minted(edge, "the-key")
    assert await status(edge, anywhere, headers={"Origin": APP}) == 403
    assert await status(edge, anywhere, headers={"Origin": "https://friend.example"}) == 101


async def test_a_page_of_its_origin_may_read_what_it_asked_for(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(api_key="the-key")
    secret = await minted(edge, "the-key", origins=[APP])
    asks = {"Origin": APP, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with edge.http.options(f"{edge.url}/v1/realtime/calls", headers=asks) as preflight:
        assert (preflight.status, preflight.headers["Access-Control-Allow-Origin"]) == (204, APP)
    for bears, expected in ((bearing(secret), 415), (bearing(secret + "x"), 401), ({}, 401)):
        async with edge.http.post(f"{edge.url}/v1/realtime/calls", data=b"", headers={"Origin": APP} | bears) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (expected, APP)


async def test_a_key_for_other_kinds_or_models_opens_nothing(serve_edge: ServeEdge) -> None:
    door = Door()
    robots = await door.ring.create(Grant(tenant="acme", kinds=frozenset(("robot",))))
    others = await door.ring.create(Grant(tenant="acme", models=frozenset(("another",))))
    edge = await serve_edge(door=door)
    for key, code in ((robots, "kind_not_allowed"), (others, "model_not_allowed")):
        async with edge.http.get(f"{edge.url}/v1/realtime", headers=bearing(key.text)) as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (403, code)
        assert await status(edge, key.text) == 403
        assert await status(edge, await minted(edge, key.text)) == 403


async def test_no_secret_is_in_any_log(serve_edge: ServeEdge, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    edge = await serve_edge(api_key="the-key")
    secret = await minted(edge, "the-key")
    await created(edge, secret)
    await status(edge, secret[:-1])
    await status(edge, f"{secret}\t")
    async with edge.http.get(f"{edge.url}/v1/models", headers={"Authorization": f"Api-Key {secret}"}):
        pass
    assert secret[3:40] not in caplog.text
    assert "the-key" not in caplog.text
