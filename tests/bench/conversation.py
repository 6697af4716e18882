"""A client that speaks recordings over the realtime WebSocket in real time and notes when everything comes back."""

import asyncio
import base64
import socket
import struct
import time
from types import TracebackType
from typing import Any

import aiohttp
import msgspec

from bench.playback import Arrival, is_voiced
from recordings import RATE, Utterance, silence, to_pcm

FRAME_S = 0.02
FRAME_BYTES = int(RATE * FRAME_S) * 2
TURN_TIMEOUT_S = 40

Event = dict[str, Any]


class Turn(msgspec.Struct):
    """Times are `time.monotonic()`; `speech_end_at` is when the last voiced sample of the question was sent."""

    name: str
    started_at: float = 0.0
    speech_end_at: float = 0.0
    committed_at: list[float] = []
    first_voiced_at: float | None = None
    arrivals: list[Arrival] = []
    heard: str = ""
    answer: str = ""
    status: str = ""
    metrics: Event = {}

    @property
    def latency_ms(self) -> float | None:
        return None if self.first_voiced_at is None else (self.first_voiced_at - self.speech_end_at) * 1000

    @property
    def pcm(self) -> bytes:
        return b"".join(arrival.pcm for arrival in self.arrivals)


class Conversation:
    """One WebSocket. `async with Conversation(url) as talk: turn = await talk.ask(utterance)`."""

    def __init__(self, url: str, session: Event | None = None) -> None:
        self._url = url
        self._session = session
        self._turn = Turn("")
        self._done = asyncio.Event()
        self._awaited: dict[str, asyncio.Future[Event]] = {}
        self._updated = asyncio.Event()
        self.errors: list[Event] = []
        self.events: list[Event] = []
        """All of them; of audio only whose it was."""

    async def __aenter__(self) -> "Conversation":
        self._http = aiohttp.ClientSession()
        self._socket = await self._http.ws_connect(f"{self._url}/v1/realtime", max_msg_size=0, compress=0)
        self._reader = asyncio.create_task(self._read())
        if self._session is not None:
            await self.send({"type": "session.update", "session": {"type": "realtime", **self._session}})
            await asyncio.wait_for(self._updated.wait(), TURN_TIMEOUT_S)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._socket.close()
        await self._reader
        await self._http.close()

    async def ask(self, utterance: Utterance) -> Turn:
        """Speak, then stay silent until the answer is complete."""
        self._begin(utterance.name)
        speaking = asyncio.create_task(self._speak(utterance.pcm()))
        try:
            await asyncio.wait_for(self._done.wait(), utterance.seconds + TURN_TIMEOUT_S)
        finally:
            speaking.cancel()
            await asyncio.wait([speaking])
        return self._turn

    async def listen_only(self, utterance: Utterance, quiet_after_s: float) -> Turn:
        """Speak, then stay silent for a fixed time: for sessions that make no answers."""
        self._begin(utterance.name)
        await self._speak(utterance.pcm(), quiet_after_s)
        return self._turn

    async def write(self, text: str, response: Event) -> Turn:
        """A text turn answered as `response` says."""
        self._begin(text)
        self._turn.speech_end_at = time.monotonic()
        part = {"type": "input_text", "text": text}
        await self.send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [part]}})
        await self.send({"type": "response.create", "response": response})
        await asyncio.wait_for(self._done.wait(), TURN_TIMEOUT_S * 2)
        return self._turn

    async def append(self, pcm: bytes) -> None:
        """Audio at once, not in real time."""
        await self.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})

    def upcoming(self, kind: str) -> "asyncio.Future[Event]":
        """The next event of this type, from now on."""
        return self._awaited.setdefault(kind, asyncio.get_running_loop().create_future())

    async def until(self, kind: str) -> Event:
        return await asyncio.wait_for(self.upcoming(kind), TURN_TIMEOUT_S)

    async def reset(self) -> None:
        """Vanish as a crashed client does: no close frame, the connection is cut and reset."""
        transport = self._socket.get_extra_info("socket")
        transport.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.shutdown(socket.SHUT_RDWR)
        await self._reader
        await self._socket.close()
        await self._http.close()

    def _begin(self, name: str) -> None:
        self._turn = Turn(name, started_at=time.monotonic())
        self._done.clear()

    async def _speak(self, speech: bytes, quiet_after_s: float = TURN_TIMEOUT_S) -> None:
        """20 ms frames on an absolute clock; a frame leaves when its last sample would have been recorded."""
        audio = speech + to_pcm(silence(quiet_after_s))
        turn, start = self._turn, time.monotonic()
        turn.speech_end_at = start + len(speech) / 2 / RATE
        for index, offset in enumerate(range(0, len(audio), FRAME_BYTES)):
            await asyncio.sleep(start + (index + 1) * FRAME_S - time.monotonic())
            frame = base64.b64encode(audio[offset : offset + FRAME_BYTES]).decode()
            await self.send({"type": "input_audio_buffer.append", "audio": frame})

    async def send(self, event: Event) -> None:
        await self._socket.send_str(msgspec.json.encode(event).decode())

    async def _read(self) -> None:
        async for message in self._socket:
            self._note(msgspec.json.decode(message.data), time.monotonic())

    def _note(self, event: Event, now: float) -> None:
        turn = self._turn
        self.events.append({name: value for name, value in event.items() if name != "delta"})
        if event["type"] in self._awaited:
            self._awaited.pop(event["type"]).set_result(event)
        match event["type"]:
            case "session.updated":
                self._updated.set()
            case "input_audio_buffer.committed":
                turn.committed_at.append(now)
            case "conversation.item.input_audio_transcription.completed":
                turn.heard += event["transcript"]
            case "response.output_audio.delta":
                pcm = base64.b64decode(event["delta"])
                turn.arrivals.append(Arrival(now, pcm))
                if turn.first_voiced_at is None and is_voiced(pcm):
                    turn.first_voiced_at = now
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                turn.answer += event["delta"]
            case "response.done":
                turn.status = event["response"]["status"]
                turn.metrics = event["response"].get("metrics", {})
                if turn.status != "cancelled":
                    self._done.set()
            case "error":
                self.errors.append(event["error"])
            case _:
                pass
