"""A call without a browser: Opus packets leave in 20 ms slots, what comes back is noted before any jitter buffer."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from bench.server import Server
from browser import microphone
from browser.ears import Told
from browser.microphone import RATE, Script
from fakes.rtc_client import Received, RtcClient
from realtime.media.opus import OpusEncoder
from recordings import Utterance, to_pcm

SLOT_S = 0.02
LEAD_IN_S = 1.0
QUIET_AFTER_S = 1.6
CONNECT_TIMEOUT_S = 10


class Line(msgspec.Struct):
    """What went over one call while a script was spoken. Times are the loop's; `sent_at`: of each packet of the script."""

    sent_at: list[float]
    received: list[Received]
    events: list[Told]

    def sent(self, at_s: float) -> float:
        """When the packet left that holds this moment of the script."""
        return self.sent_at[min(int(at_s / SLOT_S), len(self.sent_at) - 1)]

    def times(self, kind: str) -> list[float]:
        return [told.at for told in self.events if told.kind == kind]


class Phone:
    """A client that notes when its packets leave and its events arrive."""

    def __init__(self) -> None:
        self.client = RtcClient(drop=self._leaves)
        self.sent_at: list[float] = []
        self.events: list[Told] = []
        self._left = asyncio.Event()
        assert self.client.channel is not None
        self.client.channel.on("message", self._told)

    async def speak(self, packets: Sequence[bytes]) -> Line:
        self._left.clear()
        await self._left.wait()  # right after a packet has left, the next one is surely ours
        first = len(self.sent_at)
        self.client.say(packets)
        await self.client.said()
        await self._left.wait()
        return Line(self.sent_at[first : first + len(packets)], self.client.received, self.events)

    async def order(self, session: dict[str, Any]) -> None:
        self.client.send({"type": "session.update", "session": {"type": "realtime", **session}})
        await self.client.event("session.updated")

    def _leaves(self, place: int) -> bool:
        self.sent_at.append(asyncio.get_running_loop().time())
        self._left.set()
        return False

    def _told(self, message: str | bytes) -> None:
        self.events.append(Told(asyncio.get_running_loop().time(), msgspec.json.decode(message)))


@asynccontextmanager
async def calling(server: Server, session: dict[str, Any]) -> AsyncGenerator[Phone, None]:
    phone = Phone()
    async with aiohttp.ClientSession() as http, phone.client:
        await phone.client.call(http, server.url)
        await asyncio.wait_for(phone.client.opened.wait(), CONNECT_TIMEOUT_S)
        await phone.order(session)
        yield phone


def opus(script: Script) -> list[bytes]:
    """In packets of 20 ms. Takes a hundredth of the script's length: not while a call waits for its slots."""
    encoder = OpusEncoder(RATE)
    pcm, step = to_pcm(script.samples), encoder.frame_samples * 2
    return [encoder.encode(pcm[start : start + step]) for start in range(0, len(pcm) - step + 1, step)]


async def ended_early(server: Server, utterances: Sequence[Utterance], at_once: int = 4) -> list[str]:
    """Which of them were committed before they had ended."""
    silent = {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "create_response": False}}}}

    async def listen(written: Script, packets: Sequence[bytes]) -> list[str]:
        async with calling(server, silent) as phone:
            line = await phone.speak(packets)
        committed = line.times("input_audio_buffer.committed")
        return [
            one.utterance.name
            for one in written.spoken
            if any(line.sent(one.begin_s) < at < line.sent(one.end_s) for at in committed)
        ]

    scripts = [
        microphone.script(((one, QUIET_AFTER_S) for one in utterances[first::at_once]), LEAD_IN_S) for first in range(at_once)
    ]
    early = await asyncio.gather(*(listen(written, packets) for written, packets in [(one, opus(one)) for one in scripts]))
    return [name for names in early for name in names]
