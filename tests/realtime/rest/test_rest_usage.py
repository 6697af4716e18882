"""What one-shot requests are billed."""

import asyncio
from collections.abc import Mapping

import aiohttp
import pytest

from fakes import sounds
from fakes.doors import Door
from fakes.edge import Edge, ServeEdge
from fakes.graph import MS_PER_CHARACTER, FakeGraph
from realtime.media.client import MediaClient
from sessions.identity.key_ring import Grant

ANSWER = "The capital of France is Paris."
CHAT = {"model": "smollm2", "messages": [{"role": "user", "content": "Hello?"}]}


async def billed(edge: Edge, tenant: str = "local", requests: int = 1) -> Mapping[str, float]:
    """When so many were answered."""
    async with asyncio.timeout(5):
        while True:
            bill = (await edge.context.store.bills()).get(tenant, {})
            if bill.get("requests", 0) >= requests:
                return bill
            await asyncio.sleep(0)


async def test_chats_are_billed_in_tokens(edge: Edge) -> None:
    async with edge.http.post(f"{edge.url}/v1/chat/completions", json=CHAT) as answer:
        usage = (await answer.json())["usage"]
    async with edge.http.post(f"{edge.url}/v1/chat/completions", json=CHAT | {"stream": True}) as answer:
        assert answer.status == 200
        await answer.read()
    bill = await billed(edge, requests=2)
    assert bill == {"requests": 2, "tokens_in": 2 * usage["prompt_tokens"], "tokens_out": 2 * usage["completion_tokens"]}
    assert usage["completion_tokens"] > 0


async def test_speech_and_transcriptions_in_seconds(edge: Edge) -> None:
    async with edge.http.post(f"{edge.url}/v1/audio/speech", json={"model": "piper", "input": ANSWER}) as answer:
        assert answer.status == 200
        await answer.read()
    form = aiohttp.FormData({"model": "whisper"})
    form.add_field("file", sounds.file(sounds.sine(1.5, 300, 16_000), 16_000, "WAV"), filename="said.wav")
    async with edge.http.post(f"{edge.url}/v1/audio/transcriptions", data=form) as answer:
        assert answer.status == 200, await answer.text()
        heard_s = (await answer.json())["usage"]["seconds"]
    bill = await billed(edge, requests=2)
    assert bill["audio_out_s"] == pytest.approx(len(ANSWER) * MS_PER_CHARACTER / 1000, abs=0.01)
    assert bill["audio_in_s"] == pytest.approx(heard_s, abs=0.01) == pytest.approx(1.5, abs=0.05)


async def test_pictures_by_number(edge: Edge) -> None:
    wish = {"prompt": "a cat", "n": 3}
    async with edge.http.post(f"{edge.url}/v1/images/generations", json=wish) as answer:
        assert (await answer.json())["usage"]["pictures"] == 3
    async with edge.http.post(f"{edge.url}/v1/images/generations", json={"prompt": "a cat", "stream": True}) as answer:
        await answer.read()
    assert await billed(edge, requests=2) == {"requests": 2, "pictures": 4}


async def test_a_request_that_is_refused_costs_nothing(edge: Edge) -> None:
    async with edge.http.post(f"{edge.url}/v1/chat/completions", json=CHAT | {"model": "other"}) as answer:
        assert answer.status == 404
    async with edge.http.post(f"{edge.url}/v1/chat/completions", json=CHAT) as answer:
        await answer.read()
    assert (await billed(edge))["requests"] == 1


async def test_sound_that_was_made_for_a_client_that_left_is_billed(
    serve_edge: ServeEdge, graph: FakeGraph, media: MediaClient
) -> None:
    edge = await serve_edge(media=media)
    gate = graph.hold("audio")
    wish = {"model": "piper", "input": ANSWER, "response_format": "pcm"}
    async with aiohttp.ClientSession() as other:
        asking = asyncio.create_task(left_in_the_middle(other, f"{edge.url}/v1/audio/speech", wish))
        await graph.wait_for(lambda: graph.open_requests == 1)
        gate.step()
        await asking
    await edge.idle()
    async with asyncio.timeout(5):
        while not (bill := (await edge.context.store.bills()).get("local")):  # noqa: ASYNC110 (bills ring no bell)
            await asyncio.sleep(0)
    assert set(bill) == {"audio_out_s"}
    assert bill["audio_out_s"] > 0


async def left_in_the_middle(http: aiohttp.ClientSession, url: str, wish: object) -> None:
    async with http.post(url, json=wish) as answer:
        assert await answer.content.readany()
        answer.close()


async def test_each_tenant_has_its_own_bill(serve_edge: ServeEdge) -> None:
    door = Door()
    keys = [(await door.ring.create(Grant(tenant=tenant))).text for tenant in ("acme", "other")]
    edge = await serve_edge(door=door)
    for key in keys:
        headers = {"Authorization": f"Bearer {key}"}
        async with edge.http.post(f"{edge.url}/v1/chat/completions", json=CHAT, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
    assert (await billed(edge, "acme")) == (await billed(edge, "other"))
    assert set(await edge.context.store.bills()) == {"acme", "other"}
