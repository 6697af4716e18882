"""Somebody who talks with the server in real time, and notes when what comes back."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NoReturn

import aiohttp
import msgspec

from realtime.calibration.probe import ProbeFailed
from realtime.calibration.sound import BYTES_PER_S, Utterance, is_voiced
from realtime.together import unless

FRAME_S = 0.02
FRAME_BYTES = int(FRAME_S * BYTES_PER_S)
TURN_LIMIT_S = 40.0
SESSION = {
    "type": "realtime",
    "instructions": "Answer in one short sentence.",
    "audio": {"input": {"turn_detection": {"type": "semantic_vad"}}},
}


class Turn(msgspec.Struct):
    """Times by `time.monotonic`; `spoken_at`: when the last voiced sample had been sent."""

    spoken_at: float = 0.0
    committed_at: list[float] = []
    first_voiced_at: float | None = None
    empty_at: float | None = None
    """When a player that began with the first sound will have played all that came."""
    underruns: int = 0

    @property
    def latency_ms(self) -> float | None:
        return None if self.first_voiced_at is None else (self.first_voiced_at - self.spoken_at) * 1000

    @property
    def was_cut_off(self) -> bool:
        return any(at < self.spoken_at for at in self.committed_at)

    def heard(self, pcm: bytes, now: float) -> None:
        if self.first_voiced_at is None and is_voiced(pcm):
            self.first_voiced_at = now
        if self.empty_at is not None and now > self.empty_at:
            self.underruns += 1
        self.empty_at = max(now, self.empty_at or now) + len(pcm) / BYTES_PER_S


class _Response(msgspec.Struct):
    status: str = ""


class _Event(msgspec.Struct):
    """What matters here of all events."""

    type: str
    delta: str = ""
    response: _Response | None = None


_decoder = msgspec.json.Decoder(_Event)


class Person:
    """`async with person(url) as one: turn = await one.ask(utterance)`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._turn = Turn()
        self._answered = asyncio.Event()

    async def ask(self, utterance: Utterance) -> Turn:
        """Speaks, and is silent until the answer to the whole question is complete; or for too long."""
        self._turn = turn = Turn()
        self._answered.clear()
        try:
            async with asyncio.timeout(utterance.seconds + TURN_LIMIT_S):
                await unless(self._answered.wait(), self._speak(utterance, turn), self._listen())
        except TimeoutError:
            turn.first_voiced_at = None  # that was no answer
        return turn

    async def _speak(self, utterance: Utterance, turn: Turn) -> NoReturn:
        """In frames of 20 ms; each leaves when its last sample would have been recorded."""
        began_at, sent = time.monotonic(), 0
        turn.spoken_at = began_at + utterance.seconds
        while True:
            frame = utterance.pcm[sent : sent + FRAME_BYTES].ljust(FRAME_BYTES, b"\0")
            sent += FRAME_BYTES
            await asyncio.sleep(began_at + sent / BYTES_PER_S - time.monotonic())
            await self._send({"type": "input_audio_buffer.append", "audio": base64.b64encode(frame).decode()})

    async def _listen(self) -> NoReturn:
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                self._note(_decoder.decode(message.data), time.monotonic())
        raise ProbeFailed(f"the server ended a conversation (close code {self._socket.close_code}); its log tells why")

    def _note(self, event: _Event, now: float) -> None:
        match event.type:
            case "input_audio_buffer.committed":
                self._turn.committed_at.append(now)
            case "response.output_audio.delta":
                self._turn.heard(base64.b64decode(event.delta), now)
            case "response.done" if event.response is not None:
                if event.response.status != "cancelled" and now >= self._turn.spoken_at:
                    self._answered.set()
            case _:
                pass

    async def _send(self, event: dict[str, object]) -> None:
        try:
            await self._socket.send_str(json.dumps(event))
        except ConnectionError as closed:
            raise ProbeFailed("the server closed a conversation; its log tells why") from closed

    async def begin(self) -> None:
        await self._send({"type": "session.update", "session": SESSION})


@asynccontextmanager
async def person(url: str) -> AsyncGenerator[Person]:
    """Raises ProbeFailed."""
    try:
        async with aiohttp.ClientSession() as http, http.ws_connect(f"{url}/v1/realtime", max_msg_size=0) as socket:
            one = Person(socket)
            await one.begin()
            yield one
    except aiohttp.ClientError as refused:
        raise ProbeFailed(f"the server does not let a conversation begin: {refused}") from refused
