"""The user has said something, and whoever was to answer it is gone: another node answers it, once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from engines.parameters import Generation
from fakes.dying_store import DyingStore
from fakes.edge import Edge, ServeEdge
from fakes.graph import FakeGraph, silence, tone
from strict_client import StrictClient, alive

TRANSCRIPT = b"input_audio_transcription.completed"
CREATED = b'"response.created"'
BEGUN = b"response.output_item.added"
UNASKED = {"input": {"turn_detection": {"type": "server_vad", "create_response": False}}}
NO_TRANSCRIPT = {"input": {"transcription": None}}


@pytest.fixture
def store() -> DyingStore:
    return DyingStore()


@pytest_asyncio.fixture
async def nodes(serve_edge: ServeEdge, store: DyingStore) -> list[Edge]:
    return [await serve_edge(store=store, name=name) for name in ("one", "other")]


async def speak(client: StrictClient, audio: dict[str, Any] | None = None) -> str:
    """A whole turn; how to come back, and hear what follows."""
    token = client.seen[0]["resume"]["token"]
    if audio is not None:
        await client.send("session.update", session={"type": "realtime", "audio": audio})
        token = (await client.until("session.updated"))["resume"]["token"]
    for pcm in (tone(800), silence(1_500)):
        for start in range(0, len(pcm), 960):
            await client.append(pcm[start : start + 960])
    await client.until("conversation.item.done")
    return f"/v1/realtime?resume={token}"


@asynccontextmanager
async def gone_on(nodes: list[Edge], store: DyingStore, audio: dict[str, Any] | None = None) -> AsyncGenerator[StrictClient]:
    """At the other node, when the first has died before its last word."""
    one, other = nodes
    async with one.connect() as first:
        back = await speak(first, audio)
        session_id = first.seen[0]["session"]["id"]
        await store.died.wait()
        await store.disown(session_id, "one")
        async with other.socket(back) as second:
            await second.until("session.created")
            await one.context.ownership.renew()
            yield second


async def answers(client: StrictClient) -> list[str]:
    """How those have ended that there are."""
    await alive(client)
    return [event["response"]["status"] for event in client.seen if event["type"] == "response.done"]


@pytest.mark.parametrize("audio", [None, NO_TRANSCRIPT])
async def test_what_had_not_begun_is_answered_once(
    nodes: list[Edge], store: DyingStore, graph: FakeGraph, audio: dict[str, Any] | None
) -> None:
    store.last_word = CREATED
    async with gone_on(nodes, store, audio) as client:
        await client.until("response.done")
        asked = graph.of("thinker")[-1].parameters["thinker"]
        assert isinstance(asked, Generation)
        assert asked.messages[-1].content == graph.transcripts[0]
        assert await answers(client) == ["completed"]
        assert client.types().count("response.created") == 1


async def test_what_had_begun_is_not_begun_again(nodes: list[Edge], store: DyingStore) -> None:
    store.last_word = BEGUN
    async with gone_on(nodes, store) as client:
        assert await answers(client) == ["cancelled"]
        assert "response.created" not in client.types()


async def test_of_what_nobody_has_understood_the_answer_fails(nodes: list[Edge], store: DyingStore) -> None:
    store.last_word = TRANSCRIPT
    async with gone_on(nodes, store) as client:
        done = await client.until("response.done")
        assert "is gone" in done["response"]["status_details"]["error"]["message"]
        assert await answers(client) == ["failed"]


async def test_what_is_answered_only_when_the_client_asks_is_left_to_it(nodes: list[Edge], store: DyingStore) -> None:
    store.last_word = TRANSCRIPT
    async with gone_on(nodes, store, UNASKED) as client:
        assert await answers(client) == []


async def test_what_had_not_begun_when_the_session_moved_begins_where_it_goes_on(nodes: list[Edge], graph: FakeGraph) -> None:
    one, other = nodes
    transcript = graph.hold("transcript")
    async with one.connect() as first:
        coming = asyncio.create_task(other.http.ws_connect(other.url + await speak(first), max_msg_size=0))
        assert (await first.error())["code"] == "superseded"
        transcript.release()
        async with await coming as socket:
            second = StrictClient(socket)
            await second.until("response.done")
            assert await answers(second) == ["completed"]


async def test_what_was_begun_while_nobody_listened_is_not_begun_again(nodes: list[Edge], graph: FakeGraph) -> None:
    one, other = nodes
    transcript = graph.hold("transcript")
    async with one.connect() as first:
        await first.send("session.update", session={"type": "realtime", "output_modalities": ["text"]})
        back = await speak(first)
        await first.socket.close(code=1001)
    transcript.release()
    await one.left_alone()
    async with one.socket(back) as second:
        token = (await second.until("session.created"))["resume"]["token"]
        assert (await second.until("response.done"))["response"]["status"] == "completed"
        async with other.socket(f"/v1/realtime?resume={token}") as third:
            assert len((await third.until("session.created"))["resync"]["items"]) == 2
            assert await answers(third) == []
