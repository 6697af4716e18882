"""Whole turns, over a real socket."""

import base64

import openai

from fakes.edge import Edge
from fakes.graph import MS_PER_CHARACTER, silence, tone
from strict_client import StrictClient

MANUAL = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}

ANSWER = [
    "response.created",
    "rate_limits.updated",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "conversation.item.done",
    "response.output_item.done",
    "response.done",
]


async def speak(client: StrictClient, *spoken_and_silent_ms: int) -> None:
    for place, duration_ms in enumerate(spoken_and_silent_ms):
        pcm = silence(duration_ms) if place % 2 else tone(duration_ms)
        for start in range(0, len(pcm), 960):
            await client.append(pcm[start : start + 960])


async def test_a_spoken_turn_has_the_order_of_the_wire(edge: Edge) -> None:
    async with edge.connect() as client:
        await speak(client, 800, 1500)
        await client.until("response.done")
    transcription = "conversation.item.input_audio_transcription.completed"
    assert transcription in client.types()
    assert [kind for kind in client.types() if kind != transcription] == [
        "session.created",
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        *ANSWER,
    ]
    event_ids = [event["event_id"] for event in client.seen]
    assert len(set(event_ids)) == len(event_ids)


async def test_a_text_turn_speaks_what_it_writes(edge: Edge) -> None:
    async with edge.connect() as client:
        await client.write("What is the capital of France?")
        await client.send("response.create")
        done = (await client.until("response.done"))["response"]
    audio = b"".join(base64.b64decode(e["delta"]) for e in client.seen if e["type"] == "response.output_audio.delta")
    said = "".join(e["delta"] for e in client.seen if e["type"] == "response.output_audio_transcript.delta")
    assert client.types()[3:] == ANSWER
    assert done["output"][0]["content"] == [{"type": "output_audio", "transcript": said}]
    assert done["usage"]["output_audio_ms"] == len(audio) // 48
    assert done["usage"]["total_tokens"] == done["usage"]["input_tokens"] + done["usage"]["output_tokens"]
    assert done["metrics"]["total_ms"] >= done["metrics"]["ttft_ms"] >= 0
    assert "thinker" in done["metrics"]["stages"]
    await edge.idle()


async def test_text_only(edge: Edge) -> None:
    async with edge.connect() as client:
        await client.write("Hello")
        await client.send("response.create", response={"output_modalities": ["text"], "metadata": {"topic": "hi"}})
        done = (await client.until("response.done"))["response"]
    assert done["output_modalities"] == ["text"]
    assert done["metadata"] == {"topic": "hi"}
    assert done["output"][0]["content"] == [{"type": "output_text", "text": "The capital of France is Paris."}]
    assert "response.output_audio.delta" not in client.types()
    assert client.types()[-6:] == [
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    ]


async def test_manual_mode_waits_for_commit_and_response_create(edge: Edge) -> None:
    async with edge.connect() as client:
        await client.send("session.update", session=MANUAL)
        assert (await client.until("session.updated"))["session"]["audio"]["input"]["turn_detection"] is None
        await client.append(tone(500))
        await client.send("input_audio_buffer.commit")
        item_id = (await client.until("input_audio_buffer.committed"))["item_id"]
        await client.send("response.create")
        await client.until("response.done")
        await client.send("conversation.item.retrieve", item_id=item_id)
        item = (await client.until("conversation.item.retrieved"))["item"]
    assert item["content"] == [{"type": "input_audio", "transcript": "What is the capital of France?"}]
    assert "input_audio_buffer.speech_started" not in client.types()


async def test_speech_cancels_the_answer(edge: Edge) -> None:
    edge.graph.hold("audio").step(1)
    async with edge.connect() as client:
        await client.write("Tell me a story.")
        await client.send("response.create")
        await client.until("response.output_audio.delta")
        await speak(client, 1_000)
        done = (await client.until("response.done"))["response"]
    assert done["status"] == "cancelled"
    assert done["status_details"] == {"type": "cancelled", "reason": "turn_detected"}


async def test_the_client_cancels_truncates_deletes_and_clears(edge: Edge) -> None:
    edge.graph.hold("text").step(1)
    async with edge.connect() as client:
        await client.write("Tell me a story.")
        await client.send("response.create")
        item_id = (await client.until("response.output_item.added"))["item"]["id"]
        await client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=0)
        assert (await client.until("conversation.item.truncated"))["audio_end_ms"] == 0
        await client.send("response.cancel")
        done = (await client.until("response.done"))["response"]
        assert done["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
        await client.send("conversation.item.delete", item_id=item_id)
        assert (await client.until("conversation.item.deleted"))["item_id"] == item_id
        await client.send("input_audio_buffer.clear")
        await client.until("input_audio_buffer.cleared")


async def test_a_failed_stage_is_told_in_the_response_and_the_next_one_works(edge: Edge) -> None:
    edge.graph.fail("text", message="out of memory")
    async with edge.connect() as client:
        await client.write("Hello")
        await client.send("response.create")
        failed = (await client.until("response.done"))["response"]
        await client.send("response.create")
        completed = (await client.until("response.done"))["response"]
    assert failed["status"] == "failed"
    assert "out of memory" in failed["status_details"]["error"]["message"]
    assert completed["status"] == "completed"


async def test_an_answer_cut_by_its_limit_is_incomplete(edge: Edge) -> None:
    edge.graph.finish_reason = "length"
    async with edge.connect() as client:
        await client.write("Hello")
        await client.send("response.create", response={"max_output_tokens": 2})
        done = (await client.until("response.done"))["response"]
    assert done["max_output_tokens"] == 2
    assert done["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}


async def test_new_instructions_reach_the_next_answer_and_nothing_else_changes(edge: Edge) -> None:
    async with edge.connect() as client:
        before = client.seen[0]["session"]
        change = {"instructions": "Speak like a pirate.", "tracing": "auto"}
        await client.send("session.update", session=change)
        after = (await client.until("session.updated"))["session"]
        await client.write("Hello")
        await client.send("response.create")
        await client.until("response.done")
    assert after == before | change
    assert after["audio"]["input"]["turn_detection"]["interrupt_response"] is True
    (request,) = edge.graph.of("thinker")
    assert "Speak like a pirate." in str(request.parameters["thinker"])


async def test_the_voice_chooses_the_output(edge: Edge) -> None:
    async with edge.connect() as client:
        await client.send("session.update", session={"audio": {"output": {"voice": "heart"}}})
        await client.write("Hello")
        await client.send("response.create")
        await client.until("response.done")
    assert "narration" in edge.graph.of("thinker")[0].outputs


async def test_the_stock_client(edge: Edge) -> None:
    stock = openai.AsyncOpenAI(base_url=f"{edge.url}/v1", api_key="none")
    async with stock, stock.realtime.connect(model="antiphon-voice") as connection:
        await connection.session.update(session={"type": "realtime", "model": "gpt-realtime-2.1", "output_modalities": ["text"]})
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
        )
        await connection.response.create()
        text = ""
        async for event in connection:
            if event.type == "session.updated":
                assert event.session.type == "realtime"
                assert event.session.model == "antiphon-voice"
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.done":
                break
    assert text == "The capital of France is Paris."
    await edge.idle()


async def test_one_answer_after_the_other_holds_nothing_of_it(edge: Edge) -> None:
    """On one connection."""
    edge.graph.answers = [("The first is long.",), ("Second.",)]
    said: list[str] = []
    spoken_ms: list[int] = []
    async with edge.connect() as client:
        for _ in range(2):
            await client.write("Hello")
            await client.send("response.create")
            response = (await client.until("response.done"))["response"]
            own = [event for event in client.seen if event.get("response_id") == response["id"] and "delta" in event]
            said.append("".join(event["delta"] for event in own if "transcript" in event["type"]))
            pcm = b"".join(base64.b64decode(event["delta"]) for event in own if "audio.delta" in event["type"])
            spoken_ms.append(len(pcm) // 48)
    assert said == ["The first is long.", "Second."]
    assert spoken_ms == [len(text) * MS_PER_CHARACTER for text in said]


async def test_one_conversation_after_the_other_hears_nothing_of_it(edge: Edge) -> None:
    count = 12
    edge.graph.answers = [(f"answer {number}",) for number in range(count)]
    heard: list[str] = []
    for _ in range(count):
        async with edge.connect() as client:
            await client.write("Hello")
            await client.send("response.create", response={"output_modalities": ["text"]})
            heard.append((await client.until("response.done"))["response"]["output"][0]["content"][0]["text"])
    assert heard == [f"answer {number}" for number in range(count)]
