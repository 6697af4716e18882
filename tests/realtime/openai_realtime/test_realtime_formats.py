"""G.711 over a WebSocket, as a bridge to a telephone line uses it."""

import base64
from typing import Any

import numpy as np
import openai
import pytest

from fakes.edge import Edge, ServeEdge
from fakes.graph import MS_PER_CHARACTER, FakeGraph, silence, tone
from realtime.media.g711 import Law, decode, encode
from realtime.settings import ServerSettings
from strict_client import StrictClient, alive

ANSWER = "The capital of France is Paris."
ANSWER_MS = len(ANSWER) * MS_PER_CHARACTER
LAWS: tuple[Law, ...] = ("pcmu", "pcma")
PACKET_BYTES = 160
TONE_HZ = 0.3 * 24_000 / (2 * np.pi)
"""Of the fake graph's speech."""


def phone(duration_ms: float, law: Law, frequency_hz: float = 440.0) -> bytes:
    samples = 8_000 * np.sin(2 * np.pi * frequency_hz * np.arange(int(8 * duration_ms)) / 8_000)
    return encode(samples.astype("<i2").tobytes(), law)


def pitch_hz(pcm: bytes, rate_hz: int) -> float:
    samples = np.frombuffer(pcm, "<i2").astype(float)
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum)) * rate_hz / len(samples)


def loud_ms(pcm: bytes) -> float:
    """From the first loud sample at 24 kHz to the last."""
    loud = np.flatnonzero(np.abs(np.frombuffer(pcm, "<i2").astype(int)) > 400)
    return float(loud[-1] - loud[0]) / 24


def heard_by(graph: FakeGraph, entry: str) -> bytes:
    """What the last request with this entry was given to hear."""
    payloads = graph.pushed[graph.of(entry)[-1].request_id]
    return b"".join(bytes(payload.arrays["pcm"].data) for payload in payloads if "pcm" in payload.arrays)


def session(law: str, *, manual: bool = False, **output: Any) -> dict[str, Any]:
    format = {"type": f"audio/{law}"}
    sound: dict[str, Any] = {"input": {"format": format}, "output": {"format": format, **output}}
    if manual:
        sound["input"]["turn_detection"] = None
    return {"type": "realtime", "audio": sound}


async def configured(client: StrictClient, change: dict[str, Any]) -> dict[str, Any]:
    await client.send("session.update", session=change)
    return (await client.until("session.updated"))["session"]["audio"]


async def sound_of_answer(client: StrictClient, **response: Any) -> bytes:
    await client.write("What is the capital of France?")
    start = len(client.seen)
    await client.send("response.create", response=response)
    await client.until("response.done")
    return b"".join(base64.b64decode(e["delta"]) for e in client.seen[start:] if e["type"] == "response.output_audio.delta")


@pytest.mark.parametrize("law", LAWS)
async def test_a_bridge_over_the_stock_client_speaks_and_hears(edge: Edge, law: Law) -> None:
    """Twilio's own frames: 20 ms of G.711 each."""
    stock = openai.AsyncOpenAI(base_url=f"{edge.url}/v1", api_key="none")
    answer = b""
    async with stock, stock.realtime.connect(model="antiphon-voice") as connection:
        await connection.session.update(session=session(law))  # pyright: ignore[reportArgumentType] JSON as it comes
        speech = phone(800, law) + encode(silence(1_500, 8_000), law)
        for start in range(0, len(speech), PACKET_BYTES):
            await connection.input_audio_buffer.append(audio=base64.b64encode(speech[start : start + PACKET_BYTES]).decode())
        async for event in connection:
            if event.type == "session.updated":
                assert event.session.type == "realtime"
                shown: Any = event.session.to_dict()["audio"]
                assert shown["input"]["format"] == shown["output"]["format"] == {"type": f"audio/{law}"}
            if event.type == "response.output_audio.delta":
                answer += base64.b64decode(event.delta)
            if event.type == "response.done":
                break
    assert len(answer) == ANSWER_MS * 8
    assert pitch_hz(decode(answer, law), 8_000) == pytest.approx(TONE_HZ, abs=2)
    heard = heard_by(edge.graph, "asr")
    assert loud_ms(heard) == pytest.approx(800, abs=2)
    assert pitch_hz(heard, 24_000) == pytest.approx(440, abs=2)
    await edge.idle()


async def test_the_formats_are_shown_and_stay_until_they_are_changed(edge: Edge) -> None:
    async with edge.connect() as client:
        audio = await configured(client, session("pcmu"))
        assert (audio["input"]["format"], audio["output"]["format"]) == ({"type": "audio/pcmu"}, {"type": "audio/pcmu"})
        audio = await configured(client, {"instructions": "Be brief."})
        assert audio["input"]["format"] == {"type": "audio/pcmu"}
        audio = await configured(client, {"audio": {"output": {"format": {"type": "audio/pcm", "rate": 24000}}}})
        assert (audio["input"]["format"], audio["output"]["format"]["type"]) == ({"type": "audio/pcmu"}, "audio/pcm")


async def test_one_response_may_have_a_format_of_its_own(edge: Edge) -> None:
    async with edge.connect() as client:
        sound = await sound_of_answer(client, audio={"output": {"format": {"type": "audio/pcma"}}})
        assert len(sound) == ANSWER_MS * 8
        assert client.seen[-1]["response"]["audio"]["output"]["format"] == {"type": "audio/pcma"}
        assert client.seen[-1]["response"]["usage"]["output_audio_ms"] == ANSWER_MS
        assert len(await sound_of_answer(client)) == ANSWER_MS * 48


async def test_the_places_of_the_pieces_leave_no_gap(edge: Edge) -> None:
    async with edge.connect() as client:
        await configured(client, session("pcmu"))
        await sound_of_answer(client)
    pieces = [event for event in client.seen if event["type"] == "response.output_audio.delta"]
    ends_ms = [event["pts_ms"] + len(base64.b64decode(event["delta"])) / 8 for event in pieces]
    assert pieces[0]["pts_ms"] == 0
    assert [event["pts_ms"] for event in pieces[1:]] == pytest.approx(ends_ms[:-1], abs=5)
    assert ends_ms[-1] == ANSWER_MS


@pytest.mark.parametrize(("duration_ms", "taken"), [(0, False), (99, False), (100, True)])
async def test_a_commit_needs_a_tenth_of_a_second_in_any_format(edge: Edge, duration_ms: int, taken: bool) -> None:
    async with edge.connect() as client:
        await configured(client, session("pcmu", manual=True))
        if duration_ms:
            await client.append(phone(duration_ms, "pcmu"))
        await client.send("input_audio_buffer.commit")
        if taken:
            await client.until("input_audio_buffer.committed")
        else:
            assert f"got {duration_ms} ms" in (await client.error())["message"]


async def test_a_commit_holds_all_that_came_before_it_and_nothing_else(edge: Edge) -> None:
    async with edge.connect() as client:
        await configured(client, session("pcma", manual=True))
        for frequency_hz in (400.0, 800.0):
            await client.append(phone(333, "pcma", frequency_hz))
            await client.send("input_audio_buffer.commit")
            await client.until("conversation.item.input_audio_transcription.completed")
            heard = heard_by(edge.graph, "asr" if edge.graph.of("asr") else "vad")
            assert len(heard) == 333 * 48
            assert pitch_hz(heard, 24_000) == pytest.approx(frequency_hz, abs=3)


async def test_what_was_cleared_is_gone(edge: Edge) -> None:
    async with edge.connect() as client:
        await configured(client, session("pcmu", manual=True))
        await client.append(phone(500, "pcmu"))
        await alive(client)
        await client.append(encode(silence(200, 8_000), "pcmu"))
        await client.send("input_audio_buffer.commit")
        await client.until("conversation.item.input_audio_transcription.completed")
        heard = np.frombuffer(heard_by(edge.graph, "asr" if edge.graph.of("asr") else "vad"), "<i2")
    assert len(heard) == 200 * 24
    assert np.abs(heard).max() <= 8


async def test_a_change_of_format_in_mid_stream_loses_and_shifts_nothing(edge: Edge) -> None:
    """An odd byte of PCM is made a sample; the rest of the telephone's sound comes before what follows it."""
    async with edge.connect() as client:
        await configured(client, session("pcm", manual=True))
        await client.append(tone(100) + b"\x01")
        await configured(client, session("pcmu"))
        await client.append(phone(100, "pcmu"))
        await configured(client, session("pcm"))
        await client.append(tone(100))
        await client.send("input_audio_buffer.commit")
        await client.until("conversation.item.input_audio_transcription.completed")
        heard = heard_by(edge.graph, "asr" if edge.graph.of("asr") else "vad")
    assert len(heard) == 3 * 4_800 + 2
    assert heard[:4_800] == tone(100)
    assert heard[-4_800:] == tone(100)
    assert pitch_hz(heard[4_802:9_602], 24_000) == pytest.approx(440, abs=10)


@pytest.mark.parametrize("text", ["@@@", "-_-_", "", " AAAA", "AAA", 7])
async def test_what_is_no_base64_is_answered_by_name_and_the_sound_goes_on(edge: Edge, text: object) -> None:
    async with edge.connect() as client:
        await configured(client, session("pcmu", manual=True))
        await client.append(phone(100, "pcmu"))
        await client.send("input_audio_buffer.append", audio=text)
        assert (await client.error())["param"] == "audio"
        await client.append(phone(100, "pcmu"))
        await client.send("input_audio_buffer.commit")
        await client.until("input_audio_buffer.committed")


async def test_the_largest_append_lasts_as_long_in_any_format(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(settings=ServerSettings(max_append_bytes=600_000))
    async with edge.connect() as client:
        await configured(client, session("pcmu", manual=True))
        await client.append(bytes(100_001))
        error = await client.error()
        assert (error["param"], error["code"]) == ("audio", "audio_too_large")
        assert "100000" in error["message"]
        await client.append(bytes(100_000))
        await client.send("input_audio_buffer.commit")
        await client.until("input_audio_buffer.committed")


async def test_an_interrupted_answer_in_a_telephone_format_is_cut_by_time_all_the_same(edge: Edge) -> None:
    async with edge.connect() as client:
        await configured(client, session("pcmu"))
        await sound_of_answer(client)
        item_id = client.seen[-1]["response"]["output"][0]["id"]
        await client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=720)
        await client.until("conversation.item.truncated")
        await client.send("conversation.item.retrieve", item_id=item_id)
        item = (await client.until("conversation.item.retrieved"))["item"]
    assert item["content"][0]["transcript"] == "The capital"


async def test_a_client_that_comes_back_finds_its_formats(edge: Edge) -> None:
    async with edge.connect() as client:
        await configured(client, session("pcma", manual=True))
        token = client.seen[-1]["resume"]["token"]
        async with edge.socket(f"/v1/realtime?resume={token}") as again:
            sound = (await again.until("session.created"))["session"]["audio"]
            assert sound["input"]["format"] == sound["output"]["format"] == {"type": "audio/pcma"}
            await again.append(phone(100, "pcma"))
            await again.send("input_audio_buffer.commit")
            await again.until("conversation.item.input_audio_transcription.completed")
            assert len(await sound_of_answer(again)) == ANSWER_MS * 8
    assert len(heard_by(edge.graph, "vad")) == 100 * 48


async def test_nothing_of_an_answer_sounds_after_the_user_has_interrupted_it(edge: Edge) -> None:
    """Not even what the resampler still holds of it."""
    edge.graph.answers = [tuple(f"This is sentence {number}. " for number in range(20))]
    edge.graph.hold("audio").step(3)
    edge.graph.transcripts = ["Could you please stop now?"]
    async with edge.connect() as client:
        await configured(client, {"audio": {"output": {"format": {"type": "audio/pcmu"}}}})
        await client.send("response.create")
        await client.until("response.output_audio.delta")
        speech = tone(1_500) + silence(300)
        for start in range(0, len(speech), 960):
            await client.append(speech[start : start + 960])
        await client.until("response.output_audio.done")
    types = client.types()
    assert "response.output_audio.delta" not in types[types.index("input_audio_buffer.speech_started") :]
