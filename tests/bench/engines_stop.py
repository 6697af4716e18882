"""How soon the engines stand still once a long answer has been interrupted, by their own counters."""

import asyncio
from typing import Any

import aiohttp

from bench import wire
from bench.server import Server
from browser import microphone
from recordings import read_by_espeak

QUESTION = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Tell me a long story about a ship."}]}
LISTEN: dict[str, Any] = {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "create_response": False}}}}
INTERRUPTION = "Stop it right now because I have heard enough of it."
"""Without a pause in which a new answer might begin."""
ENGINES = ("thinker", "talker", "code2wav")
LOOK_EVERY_S = 0.01
WATCHED_S = 0.3
"""After the notice."""
LIMIT_S = 30.0


async def engines_stop_ms(server: Server, count: int) -> list[float]:
    """The notice that the user speaks received → last change of a counter seen; 0: they stood still by then. Only of answers
    of which the engines were at work a moment before."""
    packets = wire.opus(microphone.script([(read_by_espeak(INTERRUPTION), 0.0)], 0.1))
    taken_ms: list[float] = []
    async with wire.calling(server, LISTEN) as phone, aiohttp.ClientSession() as http:
        for _ in range(count):
            async with asyncio.timeout(LIMIT_S):
                taken_ms += await _interrupted(phone, http, server.url, packets)
    return taken_ms


async def _interrupted(phone: wire.Phone, http: aiohttp.ClientSession, url: str, packets: list[bytes]) -> list[float]:
    loop = asyncio.get_running_loop()
    phone.client.send({"type": "conversation.item.create", "item": QUESTION})
    phone.client.send({"type": "response.create", "response": {"max_output_tokens": 200}})
    await phone.client.event("output_audio_buffer.started")
    said = len(phone.events)
    phone.client.say(packets)
    changes, seen = list[float](), await _produced(http, url)
    noticed_at: float | None = None
    while noticed_at is None or loop.time() < noticed_at + WATCHED_S:
        await asyncio.sleep(LOOK_EVERY_S)
        looked_at, before = loop.time(), seen
        seen = await _produced(http, url)
        if seen != before:
            changes.append(looked_at)
        starts = (told.at for told in phone.events[said:] if told.kind == "input_audio_buffer.speech_started")
        noticed_at = next(starts, None)
    await phone.client.event("input_audio_buffer.committed")
    if not any(noticed_at - WATCHED_S < at for at in changes):
        return []
    return [round(max(0.0, changes[-1] - noticed_at) * 1000, 1)]


async def _produced(http: aiohttp.ClientSession, url: str) -> dict[str, str]:
    async with http.get(f"{url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    produced = (line.rsplit(" ", 1) for line in lines if line.startswith("antiphon_stage_produced_total{"))
    return {labels: count for labels, count in produced if any(f'stage="{engine}"' in labels for engine in ENGINES)}
