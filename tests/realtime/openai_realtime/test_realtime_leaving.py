"""Clients that leave, vanish or do not read: nothing stays behind, and nobody else notices."""

import asyncio
import base64
import json
import os
import socket
import struct

import aiohttp
import pytest

from fakes.edge import Edge, ServeEdge
from fakes.graph import silence, tone
from realtime.settings import ServerSettings
from sessions.retention.settings import SessionLimits
from sessions.voice.settings import VoiceSettings
from strict_client import StrictClient, alive

QUESTION = {"role": "user", "content": [{"type": "input_text", "text": "x"}]}


async def reset(http: aiohttp.ClientSession, client: StrictClient) -> None:
    """The connection ends as after a crash: RST, no close frame."""
    transport = client.socket.get_extra_info("socket")
    transport.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert http.connector is not None
    await http.connector.close()


PHASES = {
    "opened": None,
    "appending": None,
    "spoken": "input_audio_buffer.speech_started",
    "committed": "input_audio_buffer.committed",
    "created": "response.created",
    "speaking": "response.output_audio.delta",
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_leaves_in_any_phase_leaves_nothing_behind(serve_edge: ServeEdge, phase: str, how: str) -> None:
    edge = await serve_edge(limits=SessionLimits(answer_grace_s=0.05))
    edge.graph.hold("text").step(2)
    async with aiohttp.ClientSession() as http, Edge(edge.context, edge.graph, edge.url, http).connect() as client:
        if phase != "opened":
            await client.append(tone(800))
            await client.append(silence(1_500))
        if kind := PHASES[phase]:
            await client.until(kind)
        if how == "reset":
            await reset(http, client)
        else:
            await client.socket.close()
    await (edge.left_alone() if how == "reset" else edge.idle())
    async with edge.connect() as client:
        await alive(client)


HANDSHAKE = (
    b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


async def test_a_reset_in_the_middle_of_an_append(edge: Edge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(edge.url.rsplit(":", 1)[1]))
    writer.write(HANDSHAKE)
    assert b"101 Switching Protocols" in await reader.readuntil(b"\r\n\r\n")
    message = json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(90_000)).decode()})
    writer.write(struct.pack("!BBQ", 0x81, 0x80 | 127, len(message)) + bytes(4) + message[:1_000].encode())
    await edge.graph.wait_for(lambda: bool(edge.graph.of("vad")))
    writer.transport.abort()
    await edge.left_alone()


async def test_coming_and_going_leaves_tasks_and_descriptors_at_their_base(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=SessionLimits(maximum_sessions=2))

    async def come_and_go(count: int) -> tuple[int, int]:
        for number in range(count):
            async with aiohttp.ClientSession() as http, Edge(edge.context, edge.graph, edge.url, http).socket() as client:
                for _ in range(number % 5):
                    await client.append(tone(400))
                if number % 2:
                    await reset(http, client)
        await edge.left_alone()
        return len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))

    tasks, descriptors = await come_and_go(10)
    tasks_after, descriptors_after = await come_and_go(60)
    assert tasks_after <= tasks + 2  # a connection just closed may still say goodbye
    assert descriptors_after <= descriptors + 2


async def test_a_client_that_does_not_read_holds_back_its_own_session_only(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(voice_settings=VoiceSettings(event_queue=4))
    deltas = 60  # of 6 s of sound each: 23 MB on the wire, far more than sockets buffer
    edge.graph.answers = [("word " * 20,) * deltas, ("quick",)]
    async with edge.connect() as slow, edge.connect() as other:
        await slow.write("Tell me everything.")
        await slow.send("response.create")
        await edge.graph.wait_for(lambda: len(edge.graph.of("thinker")) == 1)
        await other.write("Hello")
        await other.send("response.create")
        assert (await other.until("response.done"))["response"]["status"] == "completed"
        answer = next(stream for stream in edge.graph.streams if stream.request.entry == "thinker")
        assert answer.timing()["thinker"].chunks < deltas
        await slow.until("response.done")
    assert slow.types().count("response.output_audio.delta") == deltas
    await edge.idle()


async def test_a_client_that_takes_nothing_is_cut_off_with_what_it_was_sent(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(settings=ServerSettings(send_timeout_s=0.1))
    edge.graph.answers = [("word " * 200,) * 20]
    before = len(os.listdir("/proc/self/fd"))
    reader, writer = await asyncio.open_connection("127.0.0.1", int(edge.url.rsplit(":", 1)[1]), limit=1_000)
    writer.write(HANDSHAKE)
    assert b"101 Switching Protocols" in await reader.readuntil(b"\r\n\r\n")
    for event in ({"type": "conversation.item.create", "item": QUESTION}, {"type": "response.create"}):
        message = json.dumps(event).encode()
        writer.write(struct.pack("!BBH", 0x81, 0x80 | 126, len(message)) + bytes(4) + message)
    async with asyncio.timeout(20):
        await edge.graph.wait_for(lambda: bool(edge.graph.of("thinker")))
        await edge.left_alone()
        # A polite close would wait for the client to read: only its own end of the connection may be left.
        while len(os.listdir("/proc/self/fd")) > before + 1:  # noqa: ASYNC110 (descriptors ring no bell)
            await asyncio.sleep(0)
    writer.transport.abort()
