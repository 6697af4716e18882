"""A realtime client over a plain WebSocket that holds every event to the types of the stock `openai` package."""

import asyncio
import base64
from typing import Any, cast

import aiohttp
import msgspec
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

Event = dict[str, Any]
EXTRA_FIELDS = {"session.created": {"resume", "resync"}, "session.updated": {"resume"}, "response.output_audio.delta": {"pts_ms"}}
"""What we add to known events."""

_stock: TypeAdapter[RealtimeServerEvent] = TypeAdapter(cast("Any", RealtimeServerEvent))


def strict_event(text: str | bytes) -> Event:
    """Fails unless this is exactly what the stock type of its name holds, and our own additions."""
    event: Event = msgspec.json.decode(text, type=dict[str, Any])
    typed = _stock.validate_json(text, strict=True)
    assert typed.type == event["type"]
    assert event["event_id"]
    unknown = set(event) - set(type(typed).model_fields) - EXTRA_FIELDS.get(event["type"], set[str]())
    assert not unknown, f"{event['type']} has unknown fields {unknown}"
    return event


class StrictClient:
    """Keeps every event in `seen`; `until` reads on."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.seen: list[Event] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self.send_raw(msgspec.json.encode({"type": kind, **fields}).decode())

    async def send_raw(self, text: str) -> None:
        await self.socket.send_str(text)

    async def append(self, pcm: bytes) -> None:
        await self.send("input_audio_buffer.append", audio=base64.b64encode(pcm).decode())

    async def next(self) -> Event:
        async with asyncio.timeout(20):
            message = await self.socket.receive()
        assert message.type is aiohttp.WSMsgType.TEXT, f"expected an event, got {message!r}"
        event = strict_event(message.data)
        self.seen.append(event)
        return event

    async def until(self, kind: str) -> Event:
        """The next event of this type."""
        while (event := await self.next())["type"] != kind:
            pass
        return event

    async def error(self) -> Event:
        return (await self.until("error"))["error"]

    async def write(self, text: str) -> None:
        part = {"type": "input_text", "text": text}
        await self.send("conversation.item.create", item={"type": "message", "role": "user", "content": [part]})

    async def closed(self) -> int | None:
        """Reads on to the end; the close code."""
        async with asyncio.timeout(20):
            while (message := await self.socket.receive()).type is aiohttp.WSMsgType.TEXT:
                self.seen.append(strict_event(message.data))
        return self.socket.close_code

    def types(self) -> list[str]:
        return [event["type"] for event in self.seen]


async def alive(client: StrictClient) -> None:
    """The session still obeys."""
    await client.send("input_audio_buffer.clear")
    await client.until("input_audio_buffer.cleared")
