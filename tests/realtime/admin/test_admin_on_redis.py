"""The admin paths over a real Redis: what is closed leaves nothing there but the bill."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from fakes.edge import Edge, edge_context, serving
from fakes.graph import FakeGraph, tone
from fakes.redis_server import running_redis
from fakes.session_stores import one_server
from sessions.store.address import open_store
from sessions.store.records import SessionRecord
from sessions.store.url import parse


@asynccontextmanager
async def on_redis(folder: Path) -> AsyncGenerator[tuple[Edge, str]]:
    graph = FakeGraph()
    async with running_redis(folder) as server, open_store(server.url, 0.0) as store:
        context = edge_context(graph, store=store)
        async with serving(context) as url, aiohttp.ClientSession() as http:
            yield Edge(context, graph, url, http), server.url


async def asked(edge: Edge, path: str, method: str = "GET") -> tuple[int, dict[str, object]]:
    async with edge.http.request(method, f"{edge.url}/v1/admin{path}") as answer:
        return answer.status, await answer.json()


async def mentions(url: str, word: str) -> list[str]:
    """Keys that have it in their name or in what they hold."""
    wire = one_server(parse(url).places[0])
    found: list[str] = []
    for key in msgspec.convert(await wire.ask("KEYS", "*"), list[bytes]):
        dumped = msgspec.convert(await wire.ask("DUMP", key), bytes)
        if word.encode() in key or word.encode() in dumped:
            found.append(key.decode())
    await wire.close()
    return found


async def test_what_is_closed_leaves_its_bill_alone(tmp_path: Path) -> None:
    async with on_redis(tmp_path) as (edge, url):
        async with edge.connect() as client:
            session_id = client.seen[0]["session"]["id"]
            await client.append(tone(500))
            await client.send("input_audio_buffer.clear")
            await client.until("input_audio_buffer.cleared")
            _, page = await asked(edge, "/sessions")
            assert [each["id"] for each in msgspec.convert(page["data"], list[dict[str, object]])] == [session_id]
            assert (await asked(edge, f"/sessions/{session_id}"))[1]["state"] == "active"
            assert len(await mentions(url, session_id)) > 2
            assert (await asked(edge, f"/sessions/{session_id}", "DELETE"))[0] == 202
            assert (await client.error())["code"] == "session_closed"
            assert await client.closed() == 1000
        await edge.idle()
        assert (await asked(edge, f"/sessions/{session_id}"))[0] == 404
        assert (await asked(edge, "/sessions"))[1] == {"data": [], "next": None}
        left = {key for key in await mentions(url, session_id) if "bill" not in key}
        assert left <= {"{admission}:news:edge-1"}  # the order itself, an id
        _, tenants = await asked(edge, "/tenants")
        assert msgspec.convert(tenants["data"], list[dict[str, object]])[0]["usage"] == {"audio_in_s": 0.5}


async def test_of_a_store_that_is_full_an_operator_sees_what_fills_it_and_ends_some_of_it(tmp_path: Path) -> None:
    async with on_redis(tmp_path) as (edge, url):
        async with edge.connect() as client:
            runs = client.seen[0]["session"]["id"]
            rests = "sess_rests"
            record = SessionRecord(session_id=rests, tenant="acme", kind="voice", model="m", life_s=600, grace_s=600)
            await edge.context.store.open(record, "another", 10.0, b"token")
            await edge.context.store.disown(rests, "another")
            wire = one_server(parse(url).places[0])
            await wire.ask("CONFIG", "SET", "maxmemory", "1mb")
            await wire.close()
            for path in ("/sessions", "/nodes", "/queue", "/seats", "/tenants"):
                assert (await asked(edge, path))[0] == 200
            assert (await asked(edge, f"/sessions/{rests}", "DELETE"))[0] == 200
            assert (await asked(edge, f"/sessions/{runs}", "DELETE"))[0] == 202
            await edge.idle()
        assert (await asked(edge, "/sessions"))[1] == {"data": [], "next": None}
