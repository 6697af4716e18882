"""A client whose network is gone in the middle of an answer: when the server notices, and how soon a new call goes on."""

import asyncio
import time
from typing import Any

import aiohttp
import msgspec

from bench.server import Server
from bench.voice import percentile
from fakes.rtc_client import RtcClient
from realtime.media.opus_frames import OPUS_SILENCE

QUESTION = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Tell me a story."}]}
LOOK_EVERY_S = 0.005
LIMIT_S = 40.0


class Comebacks(msgspec.Struct, frozen=True):
    """`detect_s`: silence → the session waits without a client; `handover_ms`: the new offer → its first packet of sound."""

    detect_s: list[float]
    handover_ms: list[float]
    continued: int

    def figures(self) -> dict[str, Any]:
        return {
            "detect_s": max(self.detect_s),
            "handover_ms": percentile(self.handover_ms, 0.95),
            "handover_p50_ms": percentile(self.handover_ms, 0.5),
            "comebacks": len(self.handover_ms),
            "answers_continued": self.continued,
        }


async def comebacks(server: Server, count: int) -> Comebacks:
    """One after the other. Every second one comes back at once, before the server has noticed that it was gone."""
    async with aiohttp.ClientSession() as http:
        done = [await _comeback(http, server, waits=place % 2 == 0) for place in range(count)]
    return Comebacks(
        detect_s=[detect_s for detect_s, _, _ in done if detect_s is not None],
        handover_ms=[handover_ms for _, handover_ms, _ in done],
        continued=sum(continued for _, _, continued in done),
    )


async def _comeback(http: aiohttp.ClientSession, server: Server, *, waits: bool) -> tuple[float | None, float, bool]:
    async with asyncio.timeout(LIMIT_S), RtcClient() as gone, RtcClient() as back:
        await gone.call(http, server.url)
        created = await gone.event("session.created")
        gone.send({"type": "conversation.item.create", "item": QUESTION})
        gone.send({"type": "response.create"})
        await gone.event("output_audio_buffer.started")
        await gone.packet(_sounds)
        gone.vanish()
        vanished_at = time.monotonic()
        detect_s = await _noticed(http, server, vanished_at) if waits else None
        offered_at = asyncio.get_running_loop().time()
        location = await back.call(http, server.url, resume=created["resume"]["token"])
        first = await back.packet()
        again = await back.event("session.created")
        assert again["session"]["id"] == created["session"]["id"]
        continued = await _goes_on(back)
        async with http.delete(server.url + location):
            pass
        return detect_s, round((first.arrived_s - offered_at) * 1000, 1), continued


async def _noticed(http: aiohttp.ClientSession, server: Server, since: float) -> float:
    while await _calls(http, server):  # noqa: ASYNC110 (another process rings no bell)
        await asyncio.sleep(LOOK_EVERY_S)
    return round(time.monotonic() - since, 2)


async def _calls(http: aiohttp.ClientSession, server: Server) -> float:
    async with http.get(f"{server.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("antiphon_calls_active "))


async def _goes_on(back: RtcClient) -> bool:
    """Whether the answer sounds in the new call."""
    try:
        async with asyncio.timeout(1.0):
            await back.packet(_sounds)
    except TimeoutError:
        return False
    return True


def _sounds(packet: Any) -> bool:
    return packet.payload != OPUS_SILENCE
