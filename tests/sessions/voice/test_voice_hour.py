"""An hour under voice activity: what it holds and what an append costs stay the same."""

import time
import tracemalloc

import numpy as np
import pytest

from fakes.graph import FakeGraph, silence, tone
from fakes.playout import FakePlayout
from fakes.voice_client import VoiceClient, config, settle, talking
from sessions.voice.commands import AppendAudio
from sessions.voice.config import SemanticVad
from sessions.voice.events import ResponseDone
from sessions.voice.playout import Heard
from sessions.voice.settings import VoiceSettings

PACKET_MS = 100
MINUTE = (tone(2_000), silence(3_000), tone(320), silence(1_000), tone(96), silence(53_584))
"""A question, a hum over its answer, a cough, and silence."""
ITEMS = 20


async def minute(client: VoiceClient, playout: FakePlayout) -> float:
    """Median seconds that an append takes, and all that follows from it."""
    took_s = list[float]()
    for part, pcm in enumerate(MINUTE):
        playout.unfinished = (Heard("resp_1", "item_1", 0),) if part in (2, 4) else ()
        for start in range(0, len(pcm), PACKET_MS * 48):
            began = time.process_time()
            client.now_s += PACKET_MS / 1000
            await client.send(AppendAudio(pcm[start : start + PACKET_MS * 48]))
            await settle()
            took_s.append(time.process_time() - began)
    assert client.of(ResponseDone)[-1].response.status == "completed"
    client.events.clear()
    return float(np.median(took_s))


def forget(graph: FakeGraph) -> None:
    """What the fake has noted for the test."""
    graph.requests.clear()
    graph.streams.clear()
    graph.aborted.clear()
    running = {request_id: inputs for request_id, inputs in graph.pushed.items() if inputs}
    graph.pushed.clear()
    for request_id in running:
        graph.pushed[request_id] = []


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_an_hour_of_turns_hums_and_coughs_costs_no_more_at_its_end() -> None:
    playout = FakePlayout()
    settings = VoiceSettings(maximum_items=ITEMS)
    async with talking(settings=settings, voice_config=config(SemanticVad()), playout=playout) as client:
        took_s, held_bytes = list[float](), list[int]()
        tracemalloc.start()
        try:
            for _ in range(60):
                took_s.append(await minute(client, playout))
                forget(client.graph)
                held_bytes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        assert np.median(took_s[-10:]) < 1.5 * np.median(took_s[10:20])
        assert max(held_bytes[-10:]) - max(held_bytes[10:20]) < 256 * 1024
