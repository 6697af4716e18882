"""The scripted graph that other tests stand on."""

import pytest

from engines.parameters import Activity, EndOfTurn, Generation
from engines.payloads import Payload, audio
from engines.requests import Graph, Request, RequestFailed
from fakes.graph import FakeGraph, silence, tone


def request(entry: str, *outputs: str) -> Request:
    parameters = {"vad": Activity(), "turn": EndOfTurn(), "thinker": Generation()}
    return Request(request_id=f"r-{entry}", entry=entry, outputs=outputs, parameters={entry: parameters[entry]})


async def test_activity_follows_loudness() -> None:
    graph: Graph = FakeGraph()
    async with await graph.submit(request("vad", "activity")) as stream:
        await stream.push(audio(silence(64) + tone(64), 24_000))
        await stream.push(audio(silence(33), 24_000), final=True)
        heard = [
            float(p)
            for delivery in [d async for d in stream]
            if "probability" in delivery.payload.arrays
            for p in delivery.payload.arrays["probability"].numpy()
        ]
    assert heard == [0, 0, 1, 1, 0]


async def test_gates_failures_and_counts() -> None:
    graph = FakeGraph()
    graph.hold("audio").step(1)
    graph.fail("audio", after=1)
    async with await graph.submit(request("thinker", "text", "audio")) as stream:
        assert graph.open_requests == 1
        await stream.push(Payload(), final=True)
        seen: list[str] = []
        deliveries = aiter(stream)
        for _ in range(3):
            seen.append((await anext(deliveries)).output)
        graph.hold("audio").release()
        with pytest.raises(RequestFailed):
            await anext(deliveries)
    assert seen == ["text", "audio", "text"]
    assert (graph.open_requests, graph.aborted) == (0, [])


async def test_an_aborted_stream_ends() -> None:
    graph = FakeGraph()
    stream = await graph.submit(request("turn", "end_of_turn"))
    await stream.abort()
    assert [delivery async for delivery in stream] == []
    assert (graph.open_requests, graph.aborted) == (0, ["r-turn"])
