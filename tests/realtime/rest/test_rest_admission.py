"""One-shot requests pass the gate: for so many at once, after a short wait, and only while the store works."""

import asyncio

import aiohttp

from engines.messages.to_gateway import StageState, StageStatus
from fakes.edge import Edge, FakeStages, ServeEdge
from fakes.faulty_store import FaultyStore
from fakes.graph import FakeGraph
from sessions.admission.settings import AdmissionSettings

CHAT = {"model": "smollm2", "messages": [{"role": "user", "content": "Hello?"}]}


async def answer(edge: Edge) -> tuple[int, str, str | None]:
    async with edge.http.post(f"{edge.url}/v1/chat/completions", json=CHAT) as response:
        return response.status, await response.text(), response.headers.get("Retry-After")


async def test_the_next_request_waits_for_its_turn_and_gets_it(serve_edge: ServeEdge, graph: FakeGraph) -> None:
    edge = await serve_edge(admission=AdmissionSettings(requests=1))
    gate = graph.hold("text")
    first = asyncio.create_task(answer(edge))
    await graph.wait_for(lambda: graph.open_requests == 1)
    second = asyncio.create_task(answer(edge))
    while (await edge.context.store.census()).waiting == 0:  # noqa: ASYNC110 (a queue rings no bell)
        await asyncio.sleep(0)
    assert graph.open_requests == 1
    gate.release()
    assert [(await first)[0], (await second)[0]] == [200, 200]
    assert (await edge.context.store.census()).active == 0


async def test_whoever_waits_in_vain_is_told_when_to_come_again(serve_edge: ServeEdge, graph: FakeGraph) -> None:
    edge = await serve_edge(admission=AdmissionSettings(requests=1, request_wait_s=0.05, place_s=0.05))
    gate = graph.hold("text")
    first = asyncio.create_task(answer(edge))
    await graph.wait_for(lambda: graph.open_requests == 1)
    status, text, retry_after = await answer(edge)
    assert (status, "session_limit_reached" in text) == (503, True)
    assert retry_after is not None
    assert int(retry_after) >= 1
    gate.release()
    assert (await first)[0] == 200


async def test_whoever_waits_in_vain_while_models_load_is_told_so(serve_edge: ServeEdge, graph: FakeGraph) -> None:
    stages = FakeStages()
    stages.thinker = StageStatus("thinker", StageState.LOADING, 8, "loading vllm")
    edge = await serve_edge(stages=stages, admission=AdmissionSettings(request_wait_s=0.05, place_s=0.05))
    edge.context.node.set(ready=False)
    status, text, retry_after = await answer(edge)
    assert (status, "not ready, still loading: thinker (loading vllm)" in text, retry_after is not None) == (503, True, True)
    assert not graph.requests


async def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind(serve_edge: ServeEdge, graph: FakeGraph) -> None:
    edge = await serve_edge(admission=AdmissionSettings(requests=1))
    gate = graph.hold("text")
    first = asyncio.create_task(answer(edge))
    await graph.wait_for(lambda: graph.open_requests == 1)
    async with aiohttp.ClientSession() as other:
        leaving = asyncio.create_task(other.post(f"{edge.url}/v1/chat/completions", json=CHAT))
        while (await edge.context.store.census()).waiting == 0:  # noqa: ASYNC110
            await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
    async with asyncio.timeout(5):
        while (await edge.context.store.census()).waiting:  # noqa: ASYNC110
            await asyncio.sleep(0)
    gate.release()
    assert (await first)[0] == 200


async def test_without_the_store_nothing_new_is_begun(serve_edge: ServeEdge, graph: FakeGraph) -> None:
    edge = await serve_edge()
    assert (await answer(edge))[0] == 200  # by now its node has told all that it had to tell
    edge.context.node.store = line = FaultyStore(edge.context.store)
    line.down = True
    status, text, retry_after = await answer(edge)
    assert (status, "store_down" in text, retry_after) == (503, True, "1")
    assert graph.open_requests == 0
    line.down = False
    assert (await answer(edge))[0] == 200


async def test_pictures_pass_the_same_gate(serve_edge: ServeEdge, graph: FakeGraph) -> None:
    edge = await serve_edge(admission=AdmissionSettings(requests=1, request_wait_s=0.05, place_s=0.05))
    gate = graph.hold("text")
    first = asyncio.create_task(answer(edge))
    await graph.wait_for(lambda: graph.open_requests == 1)
    async with edge.http.post(f"{edge.url}/v1/images/generations", json={"prompt": "a cat"}) as refused:
        assert (refused.status, (await refused.json())["error"]["code"]) == (503, "session_limit_reached")
    gate.release()
    assert (await first)[0] == 200
