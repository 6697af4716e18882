"""Every failure of a handler becomes a response in the OpenAI shape."""

import aiohttp
import msgspec
import openai
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from engines.messages.to_gateway import ErrorKind
from engines.requests import RequestFailed
from fakes.edge import Edge
from realtime.errors import Invalid, Refusal, UnknownVoice, funnel, mark_started, refusal
from sessions.voice.commands import CommandRefused


@pytest.mark.parametrize(
    ("kind", "status", "retry"),
    [
        (ErrorKind.INVALID, 400, False),
        (ErrorKind.ENGINE, 500, False),
        (ErrorKind.OVERLOADED, 503, True),
        (ErrorKind.REPLICA_LOST, 503, True),
    ],
)
def test_a_failed_request_by_kind(kind: ErrorKind, status: int, retry: bool) -> None:
    response = refusal(RequestFailed(kind, "thinker", "it broke")).response()
    assert response.status == status
    assert ("Retry-After" in response.headers) is retry


@pytest.mark.parametrize(
    ("kind", "message", "param", "told"),
    [
        (ErrorKind.INVALID, "messages: expected fewer than 2048 tokens, got 9000", "messages", "messages: expected"),
        (ErrorKind.INVALID, "language: expected 'en', got 'de'", "language", "language: expected"),
        (ErrorKind.INVALID, "pcm: expected mono", None, "asr: pcm: expected mono"),
        (ErrorKind.ENGINE, "messages: broke", None, "asr: messages: broke"),
    ],
)
def test_a_field_that_an_engine_refuses_is_named(kind: ErrorKind, message: str, param: str | None, told: str) -> None:
    body = refusal(RequestFailed(kind, "asr", message)).body
    assert body.param == param
    assert body.message.startswith(told)


def test_known_refusals_name_field_expected_and_got() -> None:
    assert refusal(CommandRefused("bad", "no", "item.id")).body.param == "item.id"
    assert refusal(Invalid("speed", "0.25 to 4", 9)).body.message == "speed: expected 0.25 to 4, got 9"
    assert "joe, heart" in str(UnknownVoice("voice", "x", ("joe", "heart")))
    assert refusal(msgspec.DecodeError("bad")).body.code == "invalid_json"
    assert len(str(Invalid("input", "less", "x" * 10_000))) < 200


async def test_nowhere_and_wrong_methods(edge: Edge) -> None:
    for path in ("/nothing", "/v1/nothing"):
        async with edge.http.get(edge.url + path) as answer:
            assert answer.status == 404
            message = (await answer.json())["error"]["message"]
        assert all(words in message for words in (f"'{path}'", "/v1/models", "/readyz", "README"))
    async with edge.http.put(f"{edge.url}/v1/models") as answer:
        assert answer.status == 405
        assert "GET" in (await answer.json())["error"]["message"]


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("chat/completions", "application/json"),
        ("audio/speech", "application/json"),
        ("audio/transcriptions", "multipart/form-data; boundary=x"),
        ("realtime/calls", "application/sdp"),
        ("realtime/calls", "multipart/form-data; boundary=x"),
    ],
)
async def test_a_body_that_is_not_encoded_as_it_says(edge: Edge, path: str, content_type: str) -> None:
    headers = {"Content-Type": content_type, "Content-Encoding": "gzip"}
    async with edge.http.post(f"{edge.url}/v1/{path}", data=b"no gzip at all", headers=headers) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "invalid_body")


async def test_a_plain_request_to_the_socket_is_told_so(edge: Edge) -> None:
    async with edge.http.get(f"{edge.url}/v1/realtime") as answer:
        assert answer.status == 400
        assert "error" in await answer.json()


async def test_the_stock_client_reads_our_errors(edge: Edge) -> None:
    async with openai.AsyncOpenAI(base_url=f"{edge.url}/v1", api_key="none", max_retries=0) as stock:
        with pytest.raises(openai.NotFoundError) as refused:
            await stock.models.retrieve("gpt-9")
    assert refused.value.code == "model_not_found"


async def test_the_unforeseen_is_logged_and_told_without_details(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_request: web.Request) -> web.StreamResponse:
        raise ZeroDivisionError("secret detail")

    response = await funnel(make_mocked_request("GET", "/x"), broken)
    assert isinstance(response, web.Response)
    assert response.status == 500
    assert response.text is not None
    assert "secret detail" not in response.text
    assert "secret detail" in caplog.text


def test_a_refusal_is_an_openai_error() -> None:
    body = msgspec.json.decode(Refusal("no", code="c", field="f").response().text or "")
    assert body["error"] == {"message": "no", "type": "invalid_request_error", "code": "c", "param": "f"}


async def test_a_failure_after_the_head_cuts_the_connection() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        raise RequestFailed(ErrorKind.REPLICA_LOST, "code2wav", "worker lost")

    app = web.Application(middlewares=[funnel])
    app.on_response_prepare.append(mark_started)
    app.add_routes([web.get("/", stream)])
    async with TestClient(TestServer(app)) as client, client.get("/") as answer:
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
