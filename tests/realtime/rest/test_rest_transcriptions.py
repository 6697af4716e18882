"""`/v1/audio/transcriptions` with the stock client and without."""

import asyncio
import io
from typing import Any

import aiohttp
import openai
import pytest

from engines.messages.to_gateway import ErrorKind
from engines.parameters import Activity, Recognition
from fakes import sounds
from fakes.edge import Edge, ServeEdge
from fakes.graph import FakeGraph
from realtime.media.client import MAX_DECODES, MediaClient
from realtime.settings import ServerSettings

WAV = sounds.file(sounds.sine(1.3, rate=44_100), 44_100, "WAV", channels=2)
MAX_BODY_BYTES = 4 << 20


def form(upload: bytes | io.BytesIO | None = WAV, name: str = "question.wav", **fields: str) -> aiohttp.FormData:
    data = aiohttp.FormData(default_to_multipart=True)
    for field, value in {"model": "whisper", **fields}.items():
        data.add_field(field, value)
    if upload is not None:
        data.add_field("file", upload, filename=name)
    return data


async def refused(http: aiohttp.ClientSession, data: object, status: int = 400) -> dict[str, Any]:
    async with http.post("/v1/audio/transcriptions", data=data) as answer:
        assert answer.status == status
        return (await answer.json())["error"]


async def test_the_stock_client_gets_text_and_duration(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    answer = await client.audio.transcriptions.create(model="whisper", file=("question.wav", WAV))
    assert answer.text == "What is the capital of France?"
    assert answer.usage is not None
    assert answer.usage.type == "duration"
    assert answer.usage.seconds == pytest.approx(1.3, abs=0.01)
    [request] = graph.of("vad")
    assert request.outputs == ("transcript",)
    assert request.parameters == {"vad": Activity(with_audio=True), "asr": Recognition("en")}


async def test_what_is_pushed_is_the_file_at_16_khz(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    async with http.post("/v1/audio/transcriptions", data=form()) as answer:
        assert answer.status == 200
        assert "total;dur=" in answer.headers["Server-Timing"]
        assert (await answer.json())["metrics"]["transcript_ms"] > 0
    pushed = graph.pushed[graph.requests[0].request_id]
    assert {payload.attributes["rate"] for payload in pushed} == {16_000}
    assert sum(payload.arrays["pcm"].shape[0] for payload in pushed) == int(1.3 * 16_000)


async def test_text_form(client: openai.AsyncOpenAI) -> None:
    answer = await client.audio.transcriptions.create(model="whisper", file=("question.wav", WAV), response_format="text")
    assert str(answer) == "What is the capital of France?\n"


async def test_silence_is_empty_text(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    graph.transcripts = [""]
    answer = await client.audio.transcriptions.create(model="whisper", file=("silence.wav", WAV))
    assert answer.text == ""


@pytest.mark.parametrize(
    ("data", "field", "words"),
    [
        pytest.param(form(b"just words " * 99, "notes.txt"), "file", "expected audio (wav, mp3", id="text"),
        pytest.param(form(b""), "file", "an empty file", id="empty"),
        pytest.param(form(WAV[:44]), "file", "missing or damaged", id="header alone"),
        pytest.param(form(None), "file", "expected an audio file, got none", id="no file"),
        pytest.param(form(model=""), "model", "got none", id="no model"),
        pytest.param(form(response_format="srt"), "response_format", "json, text, got 'srt'", id="srt"),
        pytest.param(form(language="English"), "language", "ISO 639-1", id="language"),
        pytest.param(form(stream="true"), "stream", "got 'true'", id="stream"),
        pytest.param(form(prompt="x" * 70_000), "prompt", "at most 65536 bytes", id="prompt"),
    ],
)
async def test_bad_fields_are_named(
    http: aiohttp.ClientSession, graph: FakeGraph, data: aiohttp.FormData, field: str, words: str
) -> None:
    error = await refused(http, data)
    assert error["param"] == field
    assert words in error["message"]
    assert not graph.requests


@pytest.mark.parametrize("model", ["whisper-9", "smollm2", "antiphon-voice"])
async def test_a_model_that_does_not_listen_is_not_found(http: aiohttp.ClientSession, model: str) -> None:
    error = await refused(http, form(model=model), 404)
    assert error["param"] == "model"
    assert error["message"] == f"model: expected whisper for transcription, got '{model}'"


async def test_a_language_that_the_model_does_not_know_is_named(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    graph.fail("transcript", ErrorKind.INVALID, message="language: expected 'en', the only one this model knows, got 'de'")
    error = await refused(http, form(language="de"))
    assert error["param"] == "language"
    assert error["message"].startswith("language: expected 'en'")


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b"{}", "application/json"),
        (b"", "multipart/form-data"),
        (b"no boundary in here", "multipart/form-data; boundary=x"),
        (b"--x\r\nbroken", "multipart/form-data; boundary=x"),
        (b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\ncut off', "multipart/form-data; boundary=x"),
    ],
)
async def test_a_body_that_is_no_form_is_refused(http: aiohttp.ClientSession, data: bytes, content_type: str) -> None:
    async with http.post("/v1/audio/transcriptions", data=data, headers={"Content-Type": content_type}) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["message"]


def many_fields(count: int, name_bytes: int, value_bytes: int) -> aiohttp.FormData:
    fields = {f"{index:04}".ljust(name_bytes, "n"): "x" * value_bytes for index in range(count)}
    return form(None, **fields)


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        pytest.param(many_fields(4, 4, 20_000), 400, "at most 65536 bytes in all fields together", id="sum"),
        pytest.param(many_fields(20, 4_000, 0), 400, "at most 65536 bytes in all fields together", id="names"),
        pytest.param(many_fields(80, 4, 1), 413, "at most 64 fields", id="number"),
    ],
)
async def test_endless_fields_are_refused(http: aiohttp.ClientSession, data: aiohttp.FormData, status: int, words: str) -> None:
    assert words in (await refused(http, data, status))["message"]


async def test_a_form_within_the_form_is_refused(http: aiohttp.ClientSession) -> None:
    with aiohttp.MultipartWriter("form-data") as outer:
        outer.append(aiohttp.MultipartWriter("mixed"))
    assert "form within the form" in (await refused(http, outer))["message"]


HEAD = (
    b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
    b"Content-Type: multipart/form-data; boundary=B\r\n\r\n--B\r\n"
)
FILE = b'Content-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'


async def uploading(edge: Edge, begun: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client that sends no more than this."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(edge.url.rsplit(":", 1)[1]))
    writer.write(begun)
    return reader, writer


@pytest.mark.parametrize("begun", [HEAD, HEAD + FILE])
async def test_uploads_that_stall_hold_nobody_up(edge: Edge, http: aiohttp.ClientSession, begun: bytes) -> None:
    stalled = [await uploading(edge, begun) for _ in range(MAX_DECODES + 1)]
    async with http.post("/v1/audio/transcriptions", data=form()) as answer:
        assert answer.status == 200
    for _, writer in stalled:
        writer.close()


JSON_HEAD = b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


@pytest.mark.parametrize("begun", [HEAD, HEAD + FILE, HEAD + FILE + WAV[:20_000], JSON_HEAD, JSON_HEAD + b"{"])
async def test_a_body_that_stalls_is_given_up(serve_edge: ServeEdge, media: MediaClient, begun: bytes) -> None:
    edge = await serve_edge(settings=ServerSettings(receive_timeout_s=0.02), media=media)
    reader, writer = await uploading(edge, begun)
    assert (await reader.readline()).split()[1] == b"408"
    assert b"Connection: close" in await reader.readuntil(b"\r\n\r\n")
    assert b"got none for 0.02 s" in await reader.readuntil(b"}")
    writer.close()


async def test_a_json_body_beyond_the_limit_is_refused(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/audio/speech", data=io.BytesIO(bytes(MAX_BODY_BYTES + 1))) as answer:
        assert answer.status == 413
        assert str(MAX_BODY_BYTES) in (await answer.json())["error"]["message"]


async def test_too_large_an_upload_is_told_so(http: aiohttp.ClientSession) -> None:
    error = await refused(http, form(io.BytesIO(bytes(MAX_BODY_BYTES + 1))), 413)
    assert str(MAX_BODY_BYTES) in error["message"]


async def test_a_long_file_streams_through(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    upload = sounds.file(sounds.sine(600, rate=16_000), 16_000, "MP3")
    answer = await client.audio.transcriptions.create(model="whisper", file=("long.mp3", upload))
    assert answer.usage is not None
    assert answer.usage.type == "duration"
    assert answer.usage.seconds == pytest.approx(600, abs=0.2)
    assert max(len(payload.arrays["pcm"].data) for payload in graph.pushed[graph.requests[0].request_id]) <= 16_000


async def test_engines_that_fail_are_reported(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    graph.fail("transcript", ErrorKind.REPLICA_LOST)
    with pytest.raises(openai.InternalServerError, match="503 - transcript: scripted"):
        await client.audio.transcriptions.create(model="whisper", file=("question.wav", WAV))
    assert (await client.audio.transcriptions.create(model="whisper", file=("question.wav", WAV))).text


async def test_a_client_that_leaves_aborts_its_transcription(edge: Edge, graph: FakeGraph) -> None:
    graph.hold("transcript")
    async with aiohttp.ClientSession(edge.url) as leaving:
        asking = asyncio.create_task(leaving.post("/v1/audio/transcriptions", data=form()))
        await graph.wait_for(lambda: bool(graph.requests))
        asking.cancel()
        await asyncio.wait([asking])
    await graph.wait_for(lambda: graph.open_requests == 0)
    assert len(graph.aborted) == 1


async def test_eight_at_once(client: openai.AsyncOpenAI) -> None:
    async def seconds(length: float) -> float:
        upload = sounds.file(sounds.sine(length, rate=16_000), 16_000, "FLAC")
        usage = (await client.audio.transcriptions.create(model="whisper", file=("a.flac", upload))).usage
        assert usage is not None
        assert usage.type == "duration"
        return usage.seconds

    lengths = [0.5 + 0.25 * index for index in range(8)]
    assert await asyncio.gather(*map(seconds, lengths)) == pytest.approx(lengths, abs=0.01)
