"""`/v1/audio/speech` with the stock client and without."""

import asyncio
from typing import Any

import aiohttp
import msgspec
import openai
import pytest

import fakes.graph
from engines.messages.to_gateway import ErrorKind
from engines.parameters import Speech
from fakes import sounds
from fakes.edge import Edge, ServeEdge
from fakes.graph import MS_PER_CHARACTER, FakeGraph
from realtime.media.client import MediaClient
from realtime.metrics import Metrics
from realtime.settings import ServerSettings

TEXT = "The quick brown fox jumps."
SECONDS = len(TEXT) * MS_PER_CHARACTER / 1000


def body(**changes: object) -> dict[str, object]:
    return {"model": "piper", "voice": "joe", "input": TEXT, **changes}


async def refused(http: aiohttp.ClientSession, status: int = 400, **changes: object) -> dict[str, Any]:
    async with http.post("/v1/audio/speech", json=body(**changes)) as answer:
        assert answer.status == status
        return (await answer.json())["error"]


@pytest.mark.parametrize(
    ("format", "magic", "content_type"),
    [
        ("mp3", b"\xff", "audio/mpeg"),
        ("wav", b"RIFF", "audio/wav"),
        ("opus", b"OggS", "audio/ogg"),
        ("flac", b"fLaC", "audio/flac"),
    ],
)
async def test_each_format_is_what_it_says(client: openai.AsyncOpenAI, format: Any, magic: bytes, content_type: str) -> None:
    async with client.audio.speech.with_streaming_response.create(
        model="piper", voice="joe", input=TEXT, response_format=format
    ) as response:
        assert response.headers["Content-Type"] == content_type
        assert "ttfa;dur=" in response.headers["Server-Timing"]
        data = await response.read()
    assert data.startswith(magic)
    if format != "flac":
        samples, rate = sounds.read(data)
        assert len(samples) / rate == pytest.approx(SECONDS, abs=0.1)


async def test_pcm_is_the_samples_alone(client: openai.AsyncOpenAI) -> None:
    answer = await client.audio.speech.create(model="piper", voice="joe", input=TEXT, response_format="pcm")
    assert len(await answer.aread()) == int(SECONDS * 24_000) * 2


async def test_mp3_unless_asked_otherwise(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/audio/speech", json=body()) as answer:
        assert answer.content_type == "audio/mpeg"


async def test_the_first_bytes_come_before_the_last_clause(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    gate = graph.hold("audio")
    gate.step()
    async with http.post("/v1/audio/speech", json=body(response_format="wav")) as answer:
        assert (await answer.content.readany()).startswith(b"RIFF")
        assert graph.open_requests == 1
        gate.release()
        await answer.read()
    assert graph.open_requests == 0


@pytest.mark.parametrize(
    ("model", "voice", "chosen"),
    [
        ("piper", "joe", "joe"),
        ("piper", None, "joe"),
        ("piper", "alloy", "joe"),
        ("kokoro", "heart", "heart"),
        ("kokoro", None, "heart"),
        ("kokoro", "alloy", "heart"),
        ("kokoro", {"id": "heart"}, "heart"),
    ],
)
async def test_model_and_voice_choose_the_stages(
    http: aiohttp.ClientSession, graph: FakeGraph, model: str, voice: object, chosen: str
) -> None:
    async with http.post("/v1/audio/speech", json=body(model=model, voice=voice, speed=1.5)) as answer:
        assert answer.status == 200
    entry, stages = {"joe": ("talker", 2), "heart": ("narrator", 1)}[chosen]
    [request] = graph.of(entry)
    assert len(request.parameters) == stages
    assert request.parameters[entry] == Speech(voice=chosen, speed=1.5)


async def test_another_models_voice_is_refused_with_the_right_pairs(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    error = await refused(http, model="kokoro", voice="joe")
    assert error["param"] == "voice"
    assert error["message"] == "voice: expected heart with model kokoro, got joe, which is a voice of piper"
    assert not graph.requests


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"input": ""}, "input", "expected text"),
        ({"input": " \n"}, "input", "expected text"),
        ({"input": "\u200b"}, "input", "text to speak"),
        ({"input": "a" * 4097}, "input", "at most 4096 characters, got '4097 characters'"),
        ({"input": 5}, "input", "expected str, got 5"),
        ({"input": None}, "input", "expected str, got None"),
        ({"voice": "nobody"}, "voice", "joe, heart"),
        ({"voice": 7}, "voice", "got 7"),
        ({"response_format": "aac"}, "response_format", "expected one of mp3, wav, pcm, opus, flac, got 'aac'"),
        ({"speed": 0.2}, "speed", "0.25, got 0.2"),
        ({"speed": 4.1}, "speed", "4.0, got 4.1"),
        ({"speed": "fast"}, "speed", "expected float, got 'fast'"),
        ({"stream_format": "sse"}, "stream_format", "expected 'audio', got 'sse'"),
    ],
)
async def test_bad_fields_are_named(
    http: aiohttp.ClientSession, graph: FakeGraph, changes: dict[str, Any], field: str, words: str
) -> None:
    error = await refused(http, **changes)
    assert error["param"] == field
    assert words in error["message"]
    assert not graph.requests


@pytest.mark.parametrize("model", ["tts-9", "smollm2", "whisper", "antiphon-voice"])
async def test_a_model_that_does_not_speak_is_not_found(client: openai.AsyncOpenAI, model: str) -> None:
    with pytest.raises(openai.NotFoundError, match=f"expected piper or kokoro for speech, got '{model}'"):
        await client.audio.speech.create(model=model, voice="joe", input=TEXT)


async def test_one_connection_carries_one_answer_after_the_other(edge: Edge) -> None:
    """The second holds nothing of the first, and each WAV has one header."""
    async with aiohttp.ClientSession(edge.url, connector=aiohttp.TCPConnector(limit=1)) as http:
        for text in ("A first text that is long.", "Short."):
            async with http.post("/v1/audio/speech", json=body(input=text, response_format="wav")) as answer:
                wav = await answer.read()
            assert wav.count(b"RIFF") == wav.count(b"WAVEfmt ") == 1
            assert len(wav) == 44 + int(len(text) * MS_PER_CHARACTER * 24) * 2


@pytest.mark.parametrize("raw", [b"{", b"", b"[]", b'"text"', b"\xff\xfe"])
async def test_broken_json_is_refused(http: aiohttp.ClientSession, raw: bytes) -> None:
    async with http.post("/v1/audio/speech", data=raw, headers={"Content-Type": "application/json"}) as answer:
        assert answer.status == 400
        assert "body: expected" in (await answer.json())["error"]["message"]


@pytest.mark.parametrize(("kind", "status"), [(ErrorKind.INVALID, 400), (ErrorKind.ENGINE, 500), (ErrorKind.REPLICA_LOST, 503)])
async def test_a_failure_before_the_first_byte_has_a_status(
    http: aiohttp.ClientSession, graph: FakeGraph, kind: ErrorKind, status: int
) -> None:
    graph.fail("audio", kind)
    error = await refused(http, status)
    assert error["code"] == kind.value
    assert graph.open_requests == 0
    async with http.post("/v1/audio/speech", json=body()) as answer:
        assert answer.status == 200


async def test_no_place_is_told_with_retry_after(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    graph.fail_submit("talker")
    async with http.post("/v1/audio/speech", json=body()) as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) >= 1


async def test_a_failure_after_the_first_byte_cuts_the_connection(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    gate = graph.hold("audio")
    gate.step()
    async with http.post("/v1/audio/speech", json=body(response_format="wav")) as answer:
        assert answer.status == 200
        graph.fail("audio", after=1)
        gate.release()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()


async def test_text_that_is_silent_when_spoken_is_refused(http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fakes.graph, "MS_PER_CHARACTER", 0)
    error = await refused(http, input="…")
    assert "can be spoken" in error["message"]


@pytest.mark.parametrize("bytes_first", [False, True])
async def test_a_client_that_leaves_aborts_its_speech(edge: Edge, graph: FakeGraph, bytes_first: bool) -> None:
    gate = graph.hold("audio")
    async with aiohttp.ClientSession(edge.url) as leaving:
        asking = asyncio.create_task(leaving.post("/v1/audio/speech", json=body(response_format="wav")))
        await graph.wait_for(lambda: bool(graph.requests))
        if bytes_first:
            gate.step()
            answer = await asking
            await answer.content.readany()
            answer.close()
        else:
            asking.cancel()
    await graph.wait_for(lambda: graph.open_requests == 0)
    assert graph.aborted == [graph.requests[0].request_id]


async def test_a_client_that_takes_nothing_is_let_go(serve_edge: ServeEdge, media: MediaClient, graph: FakeGraph) -> None:
    edge = await serve_edge(settings=ServerSettings(send_timeout_s=0.1), media=media)
    asked = msgspec.json.encode(body(input="a" * 4_096, response_format="pcm"))  # 12 MB of sound
    reader, writer = await asyncio.open_connection("127.0.0.1", int(edge.url.rsplit(":", 1)[1]), limit=1_000)
    writer.write(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(asked) + asked)
    assert b"200" in await reader.readline()
    async with asyncio.timeout(10):
        await graph.wait_for(lambda: graph.open_requests == 0)
    writer.transport.abort()


async def test_eight_at_once_get_their_own_audio(client: openai.AsyncOpenAI) -> None:
    async def length_of(text: str) -> int:
        answer = await client.audio.speech.create(model="piper", voice="joe", input=text, response_format="pcm")
        return len(await answer.aread())

    texts = ["a" * (10 + 7 * index) for index in range(8)]
    lengths = await asyncio.gather(*map(length_of, texts))
    assert lengths == [int(len(text) * MS_PER_CHARACTER * 24) * 2 for text in texts]


async def test_answers_are_counted_by_outcome(http: aiohttp.ClientSession, graph: FakeGraph, metrics: Metrics) -> None:
    async with http.post("/v1/audio/speech", json=body()) as answer:
        await answer.read()
    await refused(http, input="")
    graph.fail("audio")
    await refused(http, 500)
    text = metrics.text({}).decode()
    for outcome in ("completed", "refused", "failed"):
        assert f'antiphon_requests_total{{outcome="{outcome}",source="speech"}} 1.0' in text
