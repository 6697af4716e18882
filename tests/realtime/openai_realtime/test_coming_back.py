"""A client whose connection was lost comes back to its session over a WebSocket; every event is held to the stock types."""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NoReturn

import aiohttp
import pytest
from aiohttp import web

from fakes.edge import Edge, ServeEdge, edge_context, serving
from fakes.graph import silence, tone
from fakes.offers import CHROMIUM
from realtime.openai_realtime.connection import LAST_WORD_S
from realtime.openai_realtime.resync import MAX_ITEMS_BYTES, resync
from sessions.admission.settings import AdmissionSettings
from sessions.retention.settings import SessionLimits
from sessions.retention.snapshots import Origin
from sessions.voice.items import InputText, Item
from sessions.voice.settings import VoiceSettings
from strict_client import Event, StrictClient, alive

LET_GO_S = 5
"""Before its pings have been missed."""
DEAD_AND_OTHER = 1 + 2
"""Descriptors: of the one its client's end alone."""
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@asynccontextmanager
async def lost(edge: Edge, query: str = "") -> AsyncGenerator[StrictClient]:
    """A connection that ends as in a crash: RST, no close frame."""
    async with aiohttp.ClientSession() as http, http.ws_connect(f"{edge.url}/v1/realtime{query}", max_msg_size=0) as opened:
        yield StrictClient(opened)
        transport = opened.get_extra_info("socket")
        transport.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert http.connector is not None
        await http.connector.close()
    await edge.left_alone()


@asynccontextmanager
async def back(edge: Edge, created: Event, last_seq: str = "") -> AsyncGenerator[tuple[StrictClient, Event]]:
    """A connection to the session of this `session.created`, and its own."""
    async with edge.socket(f"/v1/realtime?resume={created['resume']['token']}{last_seq}") as client:
        yield client, await client.until("session.created")


async def ask(client: StrictClient, text: str = "What is the capital of France?") -> None:
    await client.write(text)
    await client.send("response.create")


@pytest.mark.parametrize("last_seq", ["", "&last_seq="])
async def test_whoever_is_lost_comes_back_to_the_same_session_and_conversation(edge: Edge, last_seq: str) -> None:
    async with lost(edge) as client:
        created = await client.until("session.created")
        await client.send("session.update", session={"instructions": "Sing.", "tracing": "auto"})
        changed = await client.until("session.updated")
        await ask(client)
        item = (await client.until("response.output_item.done"))["item"]
        await client.until("response.done")
        seq = len(client.seen)
    assert (created["resume"]["seq"], changed["resume"]["seq"]) == (1, 2)
    assert created["resume"]["token"] == changed["resume"]["token"]
    assert "resync" not in created
    async with back(edge, created, last_seq and f"{last_seq}{seq}") as (client, again):
        assert again["session"] == changed["session"]
        assert again["session"]["id"] == created["session"]["id"]
        if last_seq:
            assert "resync" not in again
            assert (again["resume"]["events_replayed"], again["resume"]["frames_lost"]) == (0, 0)
        else:
            assert again["resync"]["response"] is None
            user, assistant = again["resync"]["items"]
            assert user["content"] == [{"type": "input_text", "text": "What is the capital of France?"}]
            assert (assistant["id"], assistant["status"], assistant["type"]) == (item["id"], "completed", "message")
        assert again["resume"]["token"] not in ("", created["resume"]["token"])
        assert not {event["event_id"] for event in client.seen} & {created["event_id"], changed["event_id"]}
        await ask(client)
        assert (await client.until("response.done"))["response"]["status"] == "completed"
    await edge.idle()


async def test_of_sound_alone_it_is_told_that_it_does_not_come_again(edge: Edge) -> None:
    async with lost(edge) as client:
        created = await client.until("session.created")
        await ask(client)
        await client.until("response.done")
        sounds = client.types().count("response.output_audio.delta")
    assert sounds > 0
    for has in (0, 1):  # also who has not noted the first number has the greeting, or it would have no token
        async with back(edge, created, f"&last_seq={has}") as (client, again):
            assert again["resume"]["frames_lost"] == sounds
            await client.socket.close(code=1001)
        await edge.left_alone()


async def test_a_client_that_says_goodbye_ends_its_session(edge: Edge) -> None:
    async with edge.socket() as client:
        created = await client.until("session.created")
    await edge.idle()
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with back(edge, created):
            pass
    assert refused.value.status == 404


@pytest.mark.parametrize("code", [1001, 1011, 4000])
async def test_only_a_close_with_1000_is_a_goodbye(edge: Edge, code: int) -> None:
    async with edge.socket() as client:
        created = await client.until("session.created")
        await client.socket.close(code=code)
    await edge.left_alone()
    async with back(edge, created) as (client, _):
        await alive(client)


@pytest.mark.parametrize("token", ["", "nonsense", "sess_0.secret"])
@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/realtime/calls"])
async def test_a_wrong_token_is_refused_and_tells_what_to_do(edge: Edge, token: str, path: str) -> None:
    method, body = ("GET", None) if path == "/v1/realtime" else ("POST", CHROMIUM)
    headers = UPGRADE if body is None else {"Content-Type": "application/sdp"}
    async with edge.http.request(method, f"{edge.url}{path}?resume={token}", data=body, headers=headers) as answer:
        assert answer.status == 404
        error = (await answer.json())["error"]
    assert (error["code"], error["param"]) == ("session_not_found", "resume")
    assert "open a new session" in error["message"]


async def test_a_session_that_this_server_cannot_go_on_with_is_lost_and_says_why(edge: Edge) -> None:
    async with lost(edge) as client:
        created = await client.until("session.created")
    sessions = edge.context.voice_sessions
    await sessions.put_down(created["session"]["id"])
    other = edge_context(edge.graph, store=edge.context.store, name="edge-2", origin=Origin("antiphon-world", "1"))
    async with serving(other) as url:
        path, resume = "/v1/realtime", created["resume"]["token"]
        async with edge.http.get(f"{url}{path}?resume={resume}", headers=UPGRADE) as answer:
            assert answer.status == 404
            error = (await answer.json())["error"]
        call, headers = f"{url}{path}/calls?resume={resume}", {"Content-Type": "application/sdp"}
        async with edge.http.post(call, data=CHROMIUM, headers=headers) as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (404, "session_lost")
    assert (error["code"], error["param"]) == ("session_lost", "resume")
    assert error["message"].startswith("resume: the session is lost: it was made by another model")
    async with back(edge, created) as (client, _):  # here it is not
        await alive(client)


@pytest.mark.parametrize("broken", [{}, UPGRADE | {"Sec-WebSocket-Version": "1"}, UPGRADE | {"Sec-WebSocket-Key": "short"}])
async def test_a_request_that_is_no_handshake_takes_nothing_over(edge: Edge, broken: dict[str, str]) -> None:
    async with edge.connect() as client:
        token = client.seen[0]["resume"]["token"]
        async with edge.http.get(f"{edge.url}/v1/realtime?resume={token}", headers=broken) as answer:
            assert answer.status == 400
        await alive(client)
    async with lost(edge) as client:
        created = await client.until("session.created")
    async with edge.http.get(f"{edge.url}/v1/realtime?resume={created['resume']['token']}", headers=broken) as answer:
        assert answer.status == 400
    assert edge.all_detached()
    async with back(edge, created) as (client, _):
        await alive(client)


async def test_whoever_is_gone_before_the_upgrade_leaves_no_trace(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with lost(edge) as client:
        created = await client.until("session.created")
    with monkeypatch.context() as network:
        network.setattr(web.WebSocketResponse, "prepare", gone)
        for query in ("", f"?resume={created['resume']['token']}"):
            with pytest.raises(aiohttp.ClientError):
                async with edge.socket(f"/v1/realtime{query}"):
                    pass
    await edge.left_alone()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    async with back(edge, created) as (client, _):
        await alive(client)


async def gone(*_: object) -> NoReturn:
    raise ConnectionResetError("Cannot write to closing transport")


async def test_of_two_tabs_the_newest_wins_and_neither_fights(edge: Edge) -> None:
    async with edge.socket() as first:
        created = await first.until("session.created")
        async with back(edge, created) as (second, again):
            assert (await first.error())["code"] == "superseded"
            assert await first.closed() == 4409
            await alive(second)
            async with back(edge, again) as (third, _):
                assert await second.closed() == 4409
                await alive(third)
                assert len(edge.context.voice_sessions.sessions()) == 1
    await edge.idle()


async def test_nobody_waits_for_a_socket_that_takes_nothing(serve_edge: ServeEdge) -> None:
    """Its buffers are full, and it may be gone: the newer connection is served at once, and the old one is let go."""
    edge = await serve_edge(voice_settings=VoiceSettings(event_queue=4))
    edge.graph.answers = [("word " * 20,) * 60, ("quick",)]  # 23 MB, far more than sockets buffer
    before = len(os.listdir("/proc/self/fd"))
    async with edge.socket() as dead, edge.connect() as other:
        created = await dead.until("session.created")
        await ask(dead)
        await edge.graph.wait_for(lambda: len(edge.graph.of("thinker")) == 1)
        await ask(other)
        await other.until("response.done")
        began_s = asyncio.get_running_loop().time()
        async with back(edge, created) as (client, _):
            assert asyncio.get_running_loop().time() - began_s < LAST_WORD_S
            assert (await client.until("response.done"))["response"]["status"] == "cancelled"
            assert "response.output_audio.delta" not in client.types()
            await ask(client)
            assert (await client.until("response.done"))["response"]["status"] == "completed"
        async with asyncio.timeout(LET_GO_S):
            while len(os.listdir("/proc/self/fd")) > before + DEAD_AND_OTHER:  # noqa: ASYNC110 (descriptors ring no bell)
                await asyncio.sleep(0)
    await edge.idle()


async def test_a_lost_connection_stops_the_answer_that_its_client_played(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=SessionLimits(answer_grace_s=0.05))
    edge.graph.hold("audio").step(1)
    async with lost(edge) as client:
        created = await client.until("session.created")
        await ask(client)
        response_id = (await client.until("response.output_audio.delta"))["response_id"]
    async with back(edge, created) as (client, again):
        assert again["resync"]["response"] is None
        assert again["resync"]["items"][-1]["status"] == "incomplete"
        done = (await client.until("response.done"))["response"]
        assert (done["id"], done["status"]) == (response_id, "cancelled")
        assert "response.output_audio.delta" not in client.types()


async def test_what_was_being_said_is_an_item_without_an_answer(edge: Edge) -> None:
    async with lost(edge) as client:
        created = await client.until("session.created")
        await client.append(tone(700))
        item_id = (await client.until("input_audio_buffer.speech_started"))["item_id"]
    async with back(edge, created) as (client, again):
        (item,) = again["resync"]["items"]
        assert item["id"] == item_id
        assert item["content"] == [{"type": "input_audio", "transcript": "What is the capital of France?"}]
        await client.append(tone(700))
        await client.append(silence(1_500))
        await client.until("response.done")
    assert len(edge.graph.of("thinker")) == 1


async def test_a_newcomer_to_a_full_server_is_served_and_hears_nothing_of_who_left(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=SessionLimits(maximum_sessions=1), admission=AdmissionSettings(longest_queue=0))
    edge.graph.answers = [("canary ", "canary"), ("Hello.",)]
    async with lost(edge) as client:
        created = await client.until("session.created")
        await ask(client)
        await client.until("response.output_audio.delta")
    async with edge.connect() as newcomer:
        await ask(newcomer, "Hello?")
        await newcomer.until("response.done")
        assert "canary" not in repr(newcomer.seen)
        assert "canary" not in repr(edge.graph.of("thinker")[-1])
        with pytest.raises(aiohttp.WSServerHandshakeError):
            async with back(edge, created):
                pass
        await alive(newcomer)


async def test_a_session_that_nobody_comes_back_to_ends(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=SessionLimits(detached_grace_s=0.05))
    async with lost(edge) as client:
        await client.until("session.created")
    await edge.idle()


async def test_no_session_outlives_the_server(edge: Edge) -> None:
    async with lost(edge) as client:
        await client.until("session.created")
    async with edge.context.voice_sessions:
        pass
    await edge.idle()


async def test_whoever_comes_back_to_a_stopping_server_is_told_so(edge: Edge) -> None:
    async with lost(edge) as client:
        created = await client.until("session.created")
    edge.context.drain.begin()
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with back(edge, created):
            pass
    assert refused.value.status == 503


def test_a_long_conversation_is_told_from_its_end() -> None:
    items = [
        Item(id=f"item_{number}", role="user", status="completed", parts=(InputText("x" * 10_000),)) for number in range(100)
    ]
    told = resync(items, None)
    assert [item["id"] for item in told.items] == [f"item_{number}" for number in range(88, 100)]
    assert len(repr(told)) < MAX_ITEMS_BYTES
    assert resync(items[:1], "resp").response == "resp"
