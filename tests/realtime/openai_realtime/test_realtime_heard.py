"""What was heard of an answer, as a client over a WebSocket tells and sees it."""

from typing import Any

import pytest

from fakes.edge import Edge
from fakes.graph import MS_PER_CHARACTER, tone
from strict_client import StrictClient, alive

ANSWER = "The capital of France is Paris."
ANSWER_MS = len(ANSWER) * MS_PER_CHARACTER


async def answered(client: StrictClient) -> str:
    """The id of an answer that is complete and still being played."""
    await client.write("What is the capital of France?")
    await client.send("response.create")
    return (await client.until("response.done"))["response"]["output"][0]["id"]


async def interrupt(client: StrictClient) -> None:
    await client.append(tone(1_000))
    await client.until("input_audio_buffer.speech_started")


async def remembered(client: StrictClient, item_id: str) -> str:
    await client.send("conversation.item.retrieve", item_id=item_id)
    return (await client.until("conversation.item.retrieved"))["item"]["content"][0]["transcript"]


async def test_an_interrupted_answer_is_cut_to_what_the_client_says_it_has_played(edge: Edge) -> None:
    async with edge.connect() as client:
        item_id = await answered(client)
        await client.send("output_audio_buffer.played", item_id=item_id, content_index=0, audio_ms=720)
        await interrupt(client)
        assert await remembered(client, item_id) == "The capital"
        await client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=1_320)
        assert (await client.until("conversation.item.truncated"))["audio_end_ms"] == 1_320
        assert await remembered(client, item_id) == "The capital of France"
    assert client.types().count("conversation.item.truncated") == 1
    assert not any(kind.startswith("output_audio_buffer") for kind in client.types())


async def test_a_client_that_says_nothing_is_taken_to_play_in_real_time(edge: Edge) -> None:
    async with edge.connect() as client:
        item_id = await answered(client)
        await interrupt(client)
        heard = await remembered(client, item_id)
    assert ANSWER.startswith(heard)
    assert heard != ANSWER  # it was sent a moment ago, and has two seconds


async def test_what_was_played_reaches_the_next_prompt(edge: Edge) -> None:
    async with edge.connect() as client:
        item_id = await answered(client)
        await client.send("output_audio_buffer.played", item_id=item_id, content_index=0, audio_ms=720)
        await interrupt(client)
        await client.send("session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": None}}})
        await answered(client)
    prompt = str(edge.graph.of("thinker")[-1].parameters["thinker"])
    assert "'The capital'" in prompt
    assert ANSWER not in prompt


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"item_id": "nobody"}, "item_id"),
        ({"item_id": 7}, "item_id"),
        ({"content_index": 1}, "content_index"),
        ({"content_index": -1}, "content_index"),
        ({"audio_ms": -1}, "audio_ms"),
        ({"audio_ms": 0.5}, "audio_ms"),
        ({"audio_ms": None}, "audio_ms"),
        ({"audio_ms": 2**31}, "audio_ms"),
    ],
)
async def test_a_wrong_word_about_the_playback_is_answered_by_name(edge: Edge, change: dict[str, Any], field: str) -> None:
    async with edge.connect() as client:
        item_id = await answered(client)
        await client.send(
            "output_audio_buffer.played",
            **({"item_id": item_id, "content_index": 0, "audio_ms": 10, "event_id": "mine"} | change),
        )
        error = await client.error()
        assert (error["param"], error["event_id"]) == (field, "mine")
        assert field in error["message"]
        await alive(client)


async def test_a_word_beyond_the_end_means_the_end(edge: Edge) -> None:
    async with edge.connect() as client:
        item_id = await answered(client)
        await client.send("output_audio_buffer.played", item_id=item_id, content_index=0, audio_ms=2**31 - 1)
        await interrupt(client)
        assert await remembered(client, item_id) == ANSWER
