"""Clients of a call that come back, and ask something."""

from typing import Any

from fakes.edge import Edge
from fakes.rtc_client import RtcClient

QUESTION = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Speak."}]}
Event = dict[str, Any]


async def called(edge: Edge, client: RtcClient, created: Event | None = None, session: Event | None = None) -> Event:
    """Its `session.created`; that of another call is what it comes back with."""
    token = None if created is None else created["resume"]["token"]
    await client.call(edge.http, edge.url, session, resume=token)
    return await client.event("session.created")


async def ask(client: RtcClient) -> str:
    client.send({"type": "conversation.item.create", "item": QUESTION})
    client.send({"type": "response.create"})
    return (await client.event("output_audio_buffer.started"))["response_id"]
