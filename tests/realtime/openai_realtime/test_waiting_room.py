"""A full server over the WebSocket: clients wait, are told where they stand if they ask, get in by themselves, and leave."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import openai
import pytest

from fakes.doors import Door
from fakes.edge import Edge, ServeEdge
from fakes.faulty_store import FaultyStore
from fakes.graph import FakeGraph, tone
from sessions.admission.settings import AdmissionSettings
from sessions.identity.client_secrets import Wish
from sessions.identity.key_ring import Grant
from sessions.identity.shelf_view import FRESH_S
from sessions.identity.tenants import TenantSettings
from sessions.retention.settings import SessionLimits
from strict_client import StrictClient

ONE = SessionLimits(maximum_sessions=1)
UPDATE = {"type": "session.update", "session": {"type": "realtime", "instructions": "Be very brief."}}


async def waiting(edge: Edge, count: int = 1) -> None:
    async with asyncio.timeout(10):
        while (await edge.context.store.census()).waiting != count:  # noqa: ASYNC110 (a queue rings no bell)
            await asyncio.sleep(0)


async def active(edge: Edge) -> int:
    return (await edge.context.store.census()).active


@asynccontextmanager
async def queued(edge: Edge, query: str = "?queue=events") -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
    async with edge.http.ws_connect(f"{edge.url}/v1/realtime{query}", max_msg_size=0) as socket:
        yield socket


async def told(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    async with asyncio.timeout(10):
        message = await socket.receive()
    assert message.type is aiohttp.WSMsgType.TEXT, message
    return msgspec.json.decode(message.data, type=dict[str, Any])


async def test_a_stock_client_just_waits_and_gets_its_session(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE)
    client = openai.AsyncOpenAI(api_key="none", base_url=f"{edge.url}/v1")
    async with edge.connect() as first, client.realtime.connect(model="antiphon-voice") as second:
        await second.session.update(session={"type": "realtime", "instructions": "Be very brief."})
        await waiting(edge)
        await first.socket.close()
        kinds = [(await second.recv()).type, (await second.recv()).type]
        assert kinds == ["session.created", "session.updated"]
    await edge.idle()
    await client.close()


async def test_who_asks_for_it_is_told_its_place_and_each_that_follows(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE, admission=AdmissionSettings(place_s=0.3))
    async with edge.connect() as first, queued(edge, "") as next_one:
        await waiting(edge)
        async with queued(edge) as socket:
            event = await told(socket)
            assert {name: event[name] for name in ("type", "position", "estimate_s")} == {
                "type": "session.queued",
                "position": 2,
                "estimate_s": None,
            }
            assert event["event_id"]
            await next_one.close()
            assert (await told(socket))["position"] == 1
            await first.socket.close()
            assert (await told(socket))["type"] == "session.created"
    await edge.idle()


async def test_what_a_client_writes_meanwhile_is_heeded_and_what_it_says_is_not_heard(
    serve_edge: ServeEdge, graph: FakeGraph
) -> None:
    edge = await serve_edge(limits=ONE)
    async with edge.connect() as first, queued(edge, "") as socket:
        await waiting(edge)
        for _ in range(40):
            sound = base64.b64encode(tone(1_000)).decode()
            await socket.send_json({"type": "input_audio_buffer.append", "audio": sound})
        await socket.send_json(UPDATE)
        await socket.send_json({"type": "input_audio_buffer.commit"})
        await first.socket.close()
        kinds = [(await told(socket))["type"] for _ in range(2)]
        assert kinds == ["session.created", "session.updated"]
        refused = await told(socket)
        assert (refused["type"], refused["error"]["code"]) == ("error", "input_audio_buffer_commit_empty")
    await edge.idle()


async def test_sound_that_is_sent_at_once_is_heard_where_nobody_waits(serve_edge: ServeEdge) -> None:
    edge = await serve_edge()
    async with queued(edge, "") as socket:
        await socket.send_json({"type": "input_audio_buffer.append", "audio": base64.b64encode(tone(400)).decode()})
        await socket.send_json({"type": "input_audio_buffer.commit"})
        seen = [(await told(socket))["type"]]
        while seen[-1] != "input_audio_buffer.committed":
            seen.append((await told(socket))["type"])
        assert "error" not in seen
    await edge.idle()


async def test_a_tab_that_is_closed_leaves_the_line_at_once(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE)
    async with edge.connect():
        async with queued(edge):
            await waiting(edge, 1)
        await waiting(edge, 0)
        async with queued(edge) as vanishing:
            await waiting(edge, 1)
            assert vanishing._response.connection is not None  # pyright: ignore[reportPrivateUsage]  no public way to cut it
            transport = vanishing._response.connection.transport  # pyright: ignore[reportPrivateUsage]
            assert transport is not None
            transport.abort()
            await waiting(edge, 0)
    await edge.idle()


async def test_who_says_too_much_while_it_waits_is_let_go(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE)
    async with edge.connect(), queued(edge, "") as socket:
        await waiting(edge)
        for _ in range(65):
            await socket.send_json(UPDATE)
        async with asyncio.timeout(10):
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 1013
        await waiting(edge, 0)
    await edge.idle()


async def test_who_waited_as_long_as_one_may_is_told_so(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE, admission=AdmissionSettings(longest_wait_s=0.1, place_s=0.15))
    async with edge.connect(), queued(edge, "") as socket:
        event = await told(socket)
        assert (event["type"], event["error"]["type"], event["error"]["code"]) == (
            "error",
            "server_error",
            "session_limit_reached",
        )
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 1013
    await edge.idle()


@pytest.mark.parametrize("before", [False, True])
async def test_a_tenant_over_its_quota_is_not_to_try_again_and_again(serve_edge: ServeEdge, before: bool) -> None:
    edge = await serve_edge(
        admission=AdmissionSettings(refuse_before_upgrade=before), tenants={"local": TenantSettings(sessions=1)}
    )
    async with edge.connect():
        if before:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await edge.http.ws_connect(f"{edge.url}/v1/realtime")
            assert refused.value.status == 429
            assert refused.value.headers is not None
            assert int(refused.value.headers["Retry-After"]) >= 1
        else:
            async with queued(edge, "") as socket:
                event = await told(socket)
                assert (event["error"]["type"], event["error"]["code"]) == ("rate_limit_error", "session_quota_reached")
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
                assert socket.close_code == 1008
    await edge.idle()


async def test_refused_before_the_upgrade_or_upgraded_to_wait(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE, admission=AdmissionSettings(refuse_before_upgrade=True, longest_queue=1))
    async with edge.connect() as first, queued(edge) as socket:
        assert (await told(socket))["position"] == 1
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await edge.http.ws_connect(f"{edge.url}/v1/realtime")
        assert refused.value.status == 503
        await first.socket.close()
        assert (await told(socket))["type"] == "session.created"
    await edge.idle()


async def test_a_store_that_is_down_refuses_newcomers_and_lets_those_who_talk_talk_on(serve_edge: ServeEdge) -> None:
    edge = await serve_edge()
    async with edge.connect() as first:
        edge.context.node.store = line = FaultyStore(edge.context.store)
        line.down = True
        async with queued(edge, "") as socket:
            assert (await told(socket))["error"]["code"] == "store_down"
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            assert socket.close_code == 1013
        await first.send(**UPDATE_FIELDS)
        await first.until("session.updated")
        line.down = False
    await edge.idle()


UPDATE_FIELDS: dict[str, Any] = {"kind": "session.update", "session": UPDATE["session"]}


async def test_an_open_cancelled_a_hundred_times_takes_no_seat(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE)
    async with edge.connect() as first:
        for turns in range(100):
            opening = asyncio.create_task(edge.http.ws_connect(f"{edge.url}/v1/realtime"))
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            done, _ = await asyncio.wait([opening])
            for task in done:
                if not task.cancelled() and task.exception() is None:
                    await task.result().close()
        await waiting(edge, 0)
        assert await active(edge) == 1
        await first.socket.close()
    await edge.idle()
    async with edge.connect() as again:
        assert isinstance(again, StrictClient)
    await edge.idle()


@pytest.mark.parametrize("revoked", [True, False])
@pytest.mark.parametrize("with_secret", [True, False])
async def test_a_key_that_is_revoked_while_its_client_waits_opens_no_session(
    serve_edge: ServeEdge, revoked: bool, with_secret: bool
) -> None:
    door = Door("the-key")
    key = await door.ring.create(Grant(tenant="acme"))
    bears = key.text
    if with_secret:
        bears, _ = await door.secrets.make(await door.credentials.principal(key.text), Wish(seconds=600))
    edge = await serve_edge(limits=ONE, door=door)
    async with edge.socket(headers={"Authorization": "Bearer the-key"}) as first:
        await first.until("session.created")
        async with edge.socket(headers={"Authorization": f"Bearer {bears}"}) as second:
            await waiting(edge)
            if revoked:
                await door.ring.revoke(key.key_id)
            door.now_s += FRESH_S + 0.01
            await first.socket.close()
            if revoked:
                assert (await second.error())["code"] == "invalid_api_key"
                assert await second.closed() == 1008
                assert second.types() == ["error"]
            else:
                await second.until("session.created")
    await edge.idle()
