"""An operator closes a session: its client is told, it is billed, and nothing of it is left."""

import asyncio

import pytest

from fakes.edge import Edge
from fakes.graph import FakeGraph, tone
from sessions.store.records import Order
from strict_client import StrictClient


async def close(edge: Edge, session_id: str) -> int:
    async with edge.http.delete(f"{edge.url}/v1/admin/sessions/{session_id}") as answer:
        return answer.status


async def talks(client: StrictClient, graph: FakeGraph) -> str:
    """In the middle of an answer. Returns the session's id."""
    created = await client.until("session.created")
    await client.append(tone(500))
    await client.send("input_audio_buffer.commit")
    await client.send("response.create")
    await client.until("response.output_audio_transcript.delta")
    return created["session"]["id"]


async def test_a_session_in_the_middle_of_an_answer(edge: Edge, graph: FakeGraph) -> None:
    gate = graph.hold("text")
    async with edge.socket() as client:
        talking = asyncio.create_task(talks(client, graph))
        await graph.wait_for(lambda: bool(graph.of("thinker")))
        gate.step()
        session_id = await talking
        assert await close(edge, session_id) == 202
        assert (await client.error())["code"] == "session_closed"
        assert await client.closed() == 1000
        await edge.idle()
    assert await edge.context.store.look(session_id) is None
    assert (await edge.context.store.census()).active == 0
    bill = (await edge.context.store.bills())["local"]
    assert (bill["audio_in_s"], bill["tokens_out"]) == (pytest.approx(0.5), 1)
    assert await close(edge, session_id) == 404


async def test_a_session_that_waits_for_its_client(edge: Edge) -> None:
    async with edge.connect() as client:
        created = client.seen[0]
        await client.socket.close(code=4000)
    await edge.left_alone()
    assert await close(edge, created["session"]["id"]) == 202
    await edge.idle()
    async with edge.http.get(f"{edge.url}/v1/realtime?resume={created['resume']['token']}") as answer:
        assert answer.status in (400, 404)
    assert await edge.context.store.look(created["session"]["id"]) is None


async def test_the_same_over_and_over(edge: Edge) -> None:
    async with edge.connect() as client:
        session_id = client.seen[0]["session"]["id"]
        statuses = await asyncio.gather(*(close(edge, session_id) for _ in range(8)))
        assert set(statuses) <= {200, 202, 404}
        assert (await client.error())["code"] == "session_closed"
        assert await client.closed() == 1000
    await edge.idle()


async def test_an_order_for_a_session_that_is_not_here_is_passed_over(edge: Edge) -> None:
    async with edge.connect() as client:
        await edge.context.store.order("edge-1", Order("close", "sess_other"))
        await edge.context.store.order("edge-1", Order("dance", client.seen[0]["session"]["id"]))
        await client.send("input_audio_buffer.clear")
        await client.until("input_audio_buffer.cleared")


async def test_a_session_that_is_being_put_down_does_not_rest(edge: Edge) -> None:
    async with edge.connect() as client:
        session_id = client.seen[0]["session"]["id"]
        resting = asyncio.create_task(edge.context.voice_sessions.put_down(session_id))
        await asyncio.sleep(0)
        edge.context.voice_sessions.heed(Order("close", session_id))
        await resting
        await client.closed()
    await edge.idle()
    async with asyncio.timeout(10):
        while await edge.context.store.look(session_id) is not None:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0)
