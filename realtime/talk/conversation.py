"""One question and its answer over the server's WebSocket."""

import asyncio
import base64
import itertools
import json
import ssl
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

import aiohttp
import msgspec

from realtime.talk.address import server_address
from realtime.talk.playback import Ear, Playback
from realtime.talk.question import RATE_HZ
from realtime.talk.refusals import TalkFailed, why_refused
from realtime.together import together

CHUNK_S = 0.1
CHUNK_BYTES = int(CHUNK_S * RATE_HZ) * 2
LAST_WORDS_BYTES = int(1.5 * RATE_HZ) * 2
"""Silence after the question: what is said over the answer to its beginning is understood in so long."""
SILENCE_LIMIT_S = 8.0
"""How much silence follows the question at most, until the server has noticed its end."""
NO_SPEECH_S = 1.5
"""And when the server has noticed no beginning either."""


class ErrorShown(msgspec.Struct):
    message: str = "unknown error"


class StatusDetails(msgspec.Struct):
    reason: str | None = None
    error: ErrorShown | None = None


class UsageShown(msgspec.Struct):
    output_tokens: int


class ResponseShown(msgspec.Struct):
    status: str
    status_details: StatusDetails | None = None
    usage: UsageShown | None = None


class ServerEvent(msgspec.Struct):
    """The fields that matter here, of all events."""

    type: str
    item_id: str = ""
    delta: str = ""
    transcript: str = ""
    error: ErrorShown | None = None
    response: ResponseShown | None = None


class Conversation:
    """`say` gets what a person should read, `ear` the answer's sound; `trust` says whose certificates are accepted."""

    def __init__(self, url: str, api_key: str | None, say: Callable[[str], None], ear: Ear, trust: ssl.SSLContext) -> None:
        self._url = server_address(url)
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._say = say
        self._playback = Playback(ear)
        self._trust = trust
        self._resources = AsyncExitStack()
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._turn_begun = False
        self._turn_ended = asyncio.Event()
        self._asked_at = 0.0
        self._first_text_s: float | None = None
        self._first_sound_s: float | None = None

    async def __aenter__(self) -> "Conversation":
        connector = aiohttp.TCPConnector(ssl=self._trust)
        http = await self._resources.enter_async_context(aiohttp.ClientSession(headers=self._headers, connector=connector))
        try:
            opening = http.ws_connect(f"{self._url}/v1/realtime", max_msg_size=0)
            self._socket = await self._resources.enter_async_context(opening)
        except aiohttp.WSServerHandshakeError as refused:
            why = await why_refused(http, self._url, refused.status)
            await self._resources.aclose()
            raise TalkFailed(f"the server at {self._url} refuses: {why}") from refused
        except aiohttp.ClientConnectorCertificateError as strange:
            await self._resources.aclose()
            why = strange.certificate_error
            fault = why.verify_message if isinstance(why, ssl.SSLCertVerificationError) else str(why)
            raise TalkFailed(
                f"the server at {self._url} is not trusted ({fault}); name its certificate with --cacert"
            ) from strange
        except (aiohttp.ClientError, ValueError) as unreachable:
            await self._resources.aclose()
            raise TalkFailed(f"no server answers at {self._url}; start one with: deploy/serve") from unreachable
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._resources.aclose()

    async def choose_voice(self, voice: str) -> None:
        await self._send({"type": "session.update", "session": {"type": "realtime", "audio": {"output": {"voice": voice}}}})

    async def ask_in_writing(self, text: str) -> None:
        """Returns when the answer is complete. Raises TalkFailed."""
        content = [{"type": "input_text", "text": text}]
        await self._send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": content}})
        await self._send({"type": "response.create"})
        self._say(f"you: {text}\n")
        self._asked_at = time.monotonic()
        await self._listen()

    async def ask_aloud(self, pcm: bytes) -> None:
        """In real time, as a microphone would. Returns when the answer is complete. Raises TalkFailed."""
        await together(self._speak(pcm), self._listen())

    async def _speak(self, pcm: bytes) -> None:
        next_at = time.monotonic()
        for start in itertools.count(0, CHUNK_BYTES):
            if start >= len(pcm) + LAST_WORDS_BYTES and self._turn_ended.is_set():
                return
            if start >= len(pcm) + int(self._silence_limit_s() * RATE_HZ) * 2:
                raise TalkFailed("the server has heard no speech in this question")
            chunk = pcm[start : start + CHUNK_BYTES].ljust(CHUNK_BYTES, b"\0")
            await self._send({"type": "input_audio_buffer.append", "audio": base64.b64encode(chunk).decode()})
            if start < len(pcm):
                self._asked_at = time.monotonic()
            next_at += CHUNK_S
            await asyncio.sleep(next_at - time.monotonic())

    def _silence_limit_s(self) -> float:
        return SILENCE_LIMIT_S if self._turn_begun else NO_SPEECH_S

    async def _listen(self) -> None:
        async for message in self._opened():
            if message.type is aiohttp.WSMsgType.ERROR:
                break
            if self._take(msgspec.json.decode(message.data, type=ServerEvent)):
                return
            await self._tell_played()
        raise TalkFailed("the server closed the connection before the answer was complete; its log tells why")

    async def _tell_played(self) -> None:
        if (news := self._playback.news()) is not None:
            await self._send(news)

    def _take(self, event: ServerEvent) -> bool:
        """Whether the answer is complete."""
        match event.type:
            case "input_audio_buffer.speech_started":
                self._turn_begun = True
                self._turn_ended.clear()
            case "input_audio_buffer.committed":
                self._turn_ended.set()
            case "conversation.item.input_audio_transcription.completed":
                self._say(f"you: {event.transcript.strip()}\n")
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                self._answered(event.delta)
            case "response.output_audio.delta":
                if self._first_sound_s is None:
                    self._first_sound_s = self._since_asked_s()
                self._playback.sound(event.item_id, base64.b64decode(event.delta))
            case "error":
                raise TalkFailed((event.error or ErrorShown()).message)
            case "response.done" if event.response is not None:
                return self._ended(event.response)
            case _:
                pass
        return False

    def _answered(self, text: str) -> None:
        if self._first_text_s is None:
            self._first_text_s = self._since_asked_s()
            self._say("answer: ")
        self._say(text)

    def _ended(self, response: ResponseShown) -> bool:
        details = response.status_details or StatusDetails()
        if response.status == "failed":
            raise TalkFailed(f"the answer failed: {(details.error or ErrorShown()).message}")
        if details.reason == "turn_detected":  # the question went on after a pause: its answer comes anew
            self._say(" …\n")
            self._first_text_s = self._first_sound_s = None
            return False
        if response.status == "incomplete":
            self._say(f" … cut off {_limit(response.usage)}")
        times = {"first words": self._first_text_s, "first sound": self._first_sound_s, "complete": self._since_asked_s()}
        shown = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in times.items() if seconds is not None)
        self._say(f"\n[{shown} after the question]\n")
        return True

    def _since_asked_s(self) -> float:
        return time.monotonic() - self._asked_at

    async def _send(self, event: dict[str, object]) -> None:
        try:
            await self._opened().send_str(json.dumps(event))
        except ConnectionError as closed:
            raise TalkFailed("the server closed the connection; its log tells why") from closed

    def _opened(self) -> aiohttp.ClientWebSocketResponse:
        if self._socket is None:
            raise RuntimeError("use a Conversation inside `async with`")
        return self._socket


def _limit(usage: UsageShown | None) -> str:
    return "at its limit" if usage is None else f"at the limit of {usage.output_tokens} tokens"
