"""`/v1/chat/completions` with the stock client and without."""

import asyncio
import base64
from typing import Any

import aiohttp
import msgspec
import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from engines.messages.to_gateway import ErrorKind
from engines.parameters import Activity, Generation, Message, Recognition, Speech
from fakes import sounds
from fakes.edge import Edge
from fakes.graph import MS_PER_CHARACTER, FakeGraph

QUESTION: Any = [{"role": "user", "content": "What is the capital of France?"}]
ANSWER = "The capital of France is Paris."
RECORDING = base64.b64encode(sounds.file(sounds.sine(1.2, rate=44_100), 44_100, "WAV", channels=2)).decode()
SPEAKS: Any = {"modalities": ["text", "audio"], "audio": {"voice": "joe", "format": "wav"}}
AUDIO_SAMPLES = int(len(ANSWER) * MS_PER_CHARACTER * 24)


def heard(data: str = RECORDING, format: str = "wav") -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": data, "format": format}}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


async def post(http: aiohttp.ClientSession, **changes: Any) -> tuple[int, Any]:
    async with http.post("/v1/chat/completions", json={"model": "smollm2", "messages": QUESTION} | changes) as answer:
        return answer.status, await answer.json()


async def streamed(client: openai.AsyncOpenAI, **options: Any) -> list[ChatCompletionChunk]:
    stream = await client.chat.completions.create(model="smollm2", messages=QUESTION, stream=True, **options)
    return [chunk async for chunk in stream]


def finish_reasons(chunks: list[ChatCompletionChunk]) -> list[str]:
    return [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]


async def test_a_whole_answer(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model="smollm2", messages=QUESTION)
    [choice] = answer.choices
    assert (choice.message.content, choice.finish_reason) == (ANSWER, "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (20, 2, 22)
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 8
    assert answer.model_extra is not None
    assert answer.model_extra["metrics"]["ttft_ms"] <= answer.model_extra["metrics"]["total_ms"]


async def test_what_the_model_is_given(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}], "name": "ada"},
        {"role": "assistant", "content": "Three"},
        {"role": "user", "content": "Four"},
    ]
    status, _ = await post(
        http, messages=messages, max_tokens=9, temperature=0.5, top_p=0.9, stop="\n", seed=7, n=1, user="u", metadata={}
    )
    assert status == 200
    [request] = graph.of("thinker")
    assert request.outputs == ("text",)
    assert request.parameters["thinker"] == Generation(
        messages=(
            Message("system", "Be brief."),
            Message("user", "One\ntwo"),
            Message("assistant", "Three"),
            Message("user", "Four"),
        ),
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        stop=("\n",),
        seed=7,
    )


async def test_a_streamed_answer(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    graph.finish_reason = "length"
    chunks = await streamed(client, max_completion_tokens=2)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ANSWER
    assert chunks[0].choices[0].delta.role == "assistant"
    assert finish_reasons(chunks) == ["length"]
    assert chunks[-1].choices[0].finish_reason == "length"
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].model_extra is not None
    assert "ttft_ms" in chunks[-1].model_extra["metrics"]


async def test_usage_comes_last_when_asked_for(client: openai.AsyncOpenAI) -> None:
    chunks = await streamed(client, stream_options={"include_usage": True})
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 22
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert finish_reasons(chunks) == ["stop"]


async def test_the_wire_ends_with_done(http: aiohttp.ClientSession) -> None:
    body = {"model": "smollm2", "messages": QUESTION, "stream": True}
    async with http.post("/v1/chat/completions", json=body) as answer:
        assert answer.content_type == "text/event-stream"
        events = (await answer.text()).removesuffix("\n\n").split("\n\n")
    assert events[-1] == "data: [DONE]"
    assert all(event.startswith("data: {") for event in events[:-1])
    assert "usage" not in msgspec.json.decode(events[0].removeprefix("data: "))


async def test_deltas_go_out_one_by_one(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    gate = graph.hold("text")
    gate.step()
    stream = await client.chat.completions.create(model="smollm2", messages=QUESTION, stream=True)
    iterator = aiter(stream)
    await anext(iterator)
    assert (await anext(iterator)).choices[0].delta.content == "The capital of France "
    gate.release()
    assert len([chunk async for chunk in iterator]) == 2


@pytest.mark.parametrize(("format", "magic"), [("wav", b"RIFF"), ("mp3", b"\xff"), ("opus", b"OggS"), ("flac", b"fLaC")])
async def test_a_spoken_answer(client: openai.AsyncOpenAI, graph: FakeGraph, format: Any, magic: bytes) -> None:
    answer = await client.chat.completions.create(
        model="smollm2", messages=QUESTION, modalities=["text", "audio"], audio={"voice": "joe", "format": format}
    )
    audio = answer.choices[0].message.audio
    assert audio is not None
    assert answer.choices[0].message.content is None
    assert audio.transcript == ANSWER
    assert base64.b64decode(audio.data).startswith(magic)
    [request] = graph.of("thinker")
    assert request.outputs == ("text", "audio")
    assert request.parameters["talker"] == request.parameters["code2wav"] == Speech("joe")
    assert answer.model_extra is not None
    assert answer.model_extra["metrics"]["ttfa_ms"] > 0


async def test_a_spoken_answer_as_pcm_is_whole(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    answer = await client.chat.completions.create(
        model="smollm2", messages=QUESTION, modalities=["text", "audio"], audio={"voice": "heart", "format": "pcm16"}
    )
    audio = answer.choices[0].message.audio
    assert audio is not None
    assert len(base64.b64decode(audio.data)) == AUDIO_SAMPLES * 2
    assert graph.of("thinker")[0].outputs == ("text", "narration")


async def test_a_streamed_spoken_answer(client: openai.AsyncOpenAI) -> None:
    chunks = await streamed(client, modalities=["text", "audio"], audio={"voice": "joe", "format": "pcm16"})
    audio = [delta["audio"] for chunk in chunks if (delta := chunk.choices[0].delta.model_dump()).get("audio")]
    assert "".join(piece.get("transcript") or "" for piece in audio) == ANSWER
    pcm = b"".join(base64.b64decode(piece["data"]) for piece in audio if piece.get("data"))
    assert len(pcm) == AUDIO_SAMPLES * 2
    assert audio[0]["id"].startswith("audio-")
    assert audio[-1]["expires_at"] > 0
    assert finish_reasons(chunks) == ["stop"]
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_a_question_in_sound_runs_the_whole_cascade(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    messages: Any = [{"role": "system", "content": "Be brief."}, user({"type": "text", "text": "Listen:"}, heard())]
    answer = await client.chat.completions.create(
        model="smollm2", messages=messages, modalities=["text", "audio"], audio={"voice": "joe", "format": "wav"}
    )
    assert answer.model_extra is not None
    assert answer.model_extra["input_transcript"] == "What is the capital of France?"
    audio = answer.choices[0].message.audio
    assert audio is not None
    assert audio.transcript == ANSWER
    [request] = graph.requests
    assert (request.entry, request.outputs) == ("vad", ("transcript", "text", "audio"))
    assert request.parameters["vad"] == Activity(with_audio=True)
    assert request.parameters["asr"] == Recognition()
    thinker = request.parameters["thinker"]
    assert isinstance(thinker, Generation)
    assert thinker.messages == (Message("system", "Be brief."), Message("user", "Listen:"))
    pushed = graph.pushed[request.request_id]
    assert sum(payload.arrays["pcm"].shape[0] for payload in pushed) == int(1.2 * 16_000)


async def test_a_streamed_answer_to_a_question_in_sound(client: openai.AsyncOpenAI) -> None:
    messages: Any = [user(heard())]
    stream = await client.chat.completions.create(model="smollm2", messages=messages, stream=True)
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ANSWER
    assert chunks[-1].model_extra is not None
    assert chunks[-1].model_extra["input_transcript"] == "What is the capital of France?"


async def test_recordings_of_earlier_turns_are_transcribed_first(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    graph.transcripts = ["Hello.", "And you?"]
    messages = [user(heard()), {"role": "assistant", "content": "Hi."}, user(heard(), {"type": "text", "text": "(whispered)"})]
    status, _ = await post(http, messages=messages)
    assert status == 200
    assert [request.entry for request in graph.requests] == ["vad", "vad", "thinker"]
    thinker = graph.requests[-1].parameters["thinker"]
    assert isinstance(thinker, Generation)
    assert [message.content for message in thinker.messages] == ["Hello.", "Hi.", "And you?\n(whispered)"]


async def test_nothing_to_answer_is_an_empty_answer(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    graph.transcripts, graph.answers = [""], [()]
    messages: Any = [user(heard())]
    answer = await client.chat.completions.create(model="smollm2", messages=messages)
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("", "stop")


BAD_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": []}, "messages", "at least one message"),
    ({"messages": "hello"}, "messages", "expected array, got 'hello'"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "got None"),
    ({"messages": [{"role": "user", "content": []}]}, "messages[0].content", "text or content parts"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "got 5"),
    (
        {"messages": [{"role": "robot", "content": "x"}]},
        "messages[0].role",
        "user, assistant, got 'robot'",
    ),
    ({"messages": [{"content": "x"}]}, "messages[0].role", "got none"),
    ({"messages": [user({"type": "image_url"})]}, "messages[0].content[0].type", "got 'image_url'"),
    ({"messages": [user({"type": "text"})]}, "messages[0].content[0].text", "expected a text"),
    ({"messages": [user({"type": "input_audio"})]}, "messages[0].content[0].input_audio", "data and format"),
    ({"messages": [user(heard("@@@"))]}, "messages[0].content[0].input_audio.data", "base64"),
    ({"messages": [user(heard(""))]}, "messages[0].content[0].input_audio.data", "an empty file"),
    ({"messages": [user(heard("aGVsbG8="))]}, "messages[0].content[0].input_audio.data", "expected audio"),
    ({"messages": [user(heard(format="ogg"))]}, "messages[0].content[0].input_audio.format", "got 'ogg'"),
    ({"messages": [{"role": "assistant", "content": [heard()]}]}, "messages[0].content[0].type", "of the user"),
    ({"temperature": 2.5}, "temperature", "2.0, got 2.5"),
    ({"temperature": "hot"}, "temperature", "got 'hot'"),
    ({"top_p": 0}, "top_p", "got 0"),
    ({"max_tokens": 0}, "max_tokens", "got 0"),
    ({"n": 2}, "n", "expected 1, got 2"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop", "at most 4"),
    ({"stop": ""}, "stop", "not empty"),
    ({"seed": 2**70}, "seed", "got 1180591620717411303424"),
    ({"tools": [{"type": "function"}]}, "tools", "call none"),
    ({"logprobs": True}, "logprobs", "got True"),
    ({"top_logprobs": 3}, "top_logprobs", "expected 0, got 3"),
    ({"logit_bias": {"50256": -100}}, "logit_bias", "got '1 of them'"),
    ({"tool_choice": "required"}, "tool_choice", "got 'required'"),
    ({"frequency_penalty": 0.5}, "frequency_penalty", "expected 0, got 0.5"),
    ({"response_format": {"type": "json_object"}}, "response_format.type", "got 'json_object'"),
    ({"modalities": ["video"]}, "modalities[0]", "got 'video'"),
    ({"modalities": ["text", "audio"]}, "audio", "voice and format"),
    (SPEAKS | {"audio": {"voice": "nobody", "format": "wav"}}, "audio.voice", "joe, heart"),
    (SPEAKS | {"audio": {"voice": "joe", "format": "aac"}}, "audio.format", "wav, mp3, flac, opus, pcm16"),
    (SPEAKS | {"stream": True}, "audio.format", "'pcm16' when stream is true"),
    ({"stream": "yes"}, "stream", "got 'yes'"),
]


@pytest.mark.parametrize(("changes", "field", "words"), BAD_FIELDS)
async def test_bad_fields_are_named(
    http: aiohttp.ClientSession, graph: FakeGraph, changes: dict[str, Any], field: str, words: str
) -> None:
    status, answer = await post(http, **changes)
    assert status == 400
    assert answer["error"]["param"] == field
    assert words in answer["error"]["message"]
    assert not graph.requests


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens", "seed", "n"])
@pytest.mark.parametrize("number", ["2" + "0" * 19, "1" + "0" * 23, "9" * 5_000])
async def test_a_number_that_no_engine_could_be_sent_is_named(
    http: aiohttp.ClientSession, graph: FakeGraph, field: str, number: str
) -> None:
    body = f'{{"model": "smollm2", "messages": [{{"role": "user", "content": "x"}}], "{field}": {number}}}'
    async with http.post("/v1/chat/completions", data=body) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["param"] == field
    assert not graph.requests


@pytest.mark.parametrize("body", ["%s", '{"unknown": %s}', '{"model": 3, "tools": %s}', '{"messages": %s}'])
async def test_deep_nesting_is_refused(http: aiohttp.ClientSession, body: str) -> None:
    for depth in (*range(900, 1_010, 5), 100_000):
        async with http.post("/v1/chat/completions", data=body % ("[" * depth + "]" * depth)) as answer:
            assert answer.status == 400
            assert (await answer.json())["error"]["message"]


async def test_fields_that_ask_for_nothing_are_no_matter(http: aiohttp.ClientSession) -> None:
    off: Any = {"modalities": ["text"], "stop": None, "store": False, "service_tier": "auto", "logprobs": False}
    status, _ = await post(
        http,
        **off,
        tools=[],
        tool_choice="auto",
        logit_bias={},
        top_logprobs=0,
        presence_penalty=0,
        response_format={"type": "text"},
    )
    assert status == 200


@pytest.mark.parametrize("model", ["gpt-9", "whisper", "piper"])
async def test_a_model_that_does_not_chat_is_not_found(client: openai.AsyncOpenAI, graph: FakeGraph, model: str) -> None:
    with pytest.raises(openai.NotFoundError, match=f"expected smollm2 or antiphon-voice for chat, got '{model}'"):
        await client.chat.completions.create(model=model, messages=QUESTION)
    assert not graph.requests


async def test_the_pipelines_own_name_is_a_model_that_chats(client: openai.AsyncOpenAI) -> None:
    assert (await client.chat.completions.create(model="antiphon-voice", messages=QUESTION)).model == "antiphon-voice"


async def test_a_failure_before_the_first_token_has_a_status(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    graph.fail("text", ErrorKind.INVALID, message="messages: expected at most 2048 tokens, got 9000")
    with pytest.raises(openai.BadRequestError, match="at most 2048 tokens, got 9000") as refused:
        await streamed(client)
    assert refused.value.param == "messages"


async def test_while_its_model_loads_a_chat_is_told_to_come_back(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    graph.fail_submit("thinker", ErrorKind.OVERLOADED, "not ready: loading vllm")
    async with http.post("/v1/chat/completions", json={"model": "smollm2", "messages": QUESTION}) as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert (await answer.json())["error"]["message"] == "thinker: not ready: loading vllm"


async def test_a_failure_in_mid_stream_is_told_and_has_no_finish(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    gate = graph.hold("text")
    gate.step()
    chunks: list[ChatCompletionChunk] = []
    stream = await client.chat.completions.create(model="smollm2", messages=QUESTION, stream=True)
    graph.fail("text", after=1)
    gate.release()
    with pytest.raises(openai.APIError, match="scripted"):
        chunks.extend([chunk async for chunk in stream])
    assert not finish_reasons(chunks)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_aborts_its_answer(edge: Edge, graph: FakeGraph, stream: bool) -> None:
    gate = graph.hold("text")
    async with aiohttp.ClientSession(edge.url) as leaving:
        body = {"model": "smollm2", "messages": QUESTION, "stream": stream}
        asking = asyncio.create_task(leaving.post("/v1/chat/completions", json=body))
        await graph.wait_for(lambda: bool(graph.requests))
        if stream:
            gate.step()
            answer = await asking
            await answer.content.readany()
            answer.close()
        else:
            asking.cancel()
            await asyncio.wait([asking])
    await graph.wait_for(lambda: graph.open_requests == 0)
    assert len(graph.aborted) == 1
