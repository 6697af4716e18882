"""The example of nginx, as it stands, in front of an edge: https, WebSockets, calls, streams, and who calls."""

import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp.abc import AbstractResolver, ResolveResult

from fakes.certificates import write_pair
from fakes.edge import edge_context, serving
from fakes.graph import FakeGraph
from fakes.nginx import NAME, running_nginx
from realtime.settings import ServerSettings
from strict_client import StrictClient

KEY = "hush-hush"
CLIENT = "127.0.0.5"
"""Another address than nginx connects from, so that they can be told apart."""


class Here(AbstractResolver):
    """Every name is this machine's."""

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=2, proto=0, flags=0)]

    async def close(self) -> None:
        pass


@dataclass
class Site:
    """`origin` is that of the page; `http` carries the key."""

    http: aiohttp.ClientSession
    origin: str
    plain: str
    graph: FakeGraph

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        async with self.http.get(self.origin + path, headers=headers) as answer:
            return answer.status, await answer.text()


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    graph, pair = FakeGraph(), write_pair(tmp_path, host=NAME)
    context = edge_context(graph, settings=ServerSettings(trusted_proxies=("127.0.0.1",), allowed_hosts=(NAME,)), api_key=KEY)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(context))
        plain, secured = await stack.enter_async_context(running_nginx(tmp_path, url.removeprefix("http://"), pair))
        trust = ssl.create_default_context(cafile=pair.cert)
        connector = aiohttp.TCPConnector(ssl=trust, resolver=Here(), local_addr=(CLIENT, 0))
        bearing = {"Authorization": f"Bearer {KEY}"}
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, headers=bearing))
        yield Site(http, f"https://{NAME}:{secured}", f"http://{NAME}:{plain}", graph)


async def test_the_page_and_what_it_asks_for(site: Site) -> None:
    status, page = await site.get("/")
    assert (status, page.startswith("<!doctype html>")) == (200, True)
    assert (await site.get("/readyz"))[0] == 200
    assert (await site.get("/v1/models", {"Origin": site.origin, "Sec-Fetch-Site": "same-origin"}))[0] == 200
    assert (await site.get("/v1/models", {"Origin": "https://evil.example"}))[0] == 403
    assert (await site.get("/v1/models", {"Authorization": "Bearer wrong"}))[0] == 401


async def test_plain_http_is_sent_to_https(site: Site) -> None:
    async with site.http.get(f"{site.plain}/x?y=1", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (301, f"https://{NAME}/x?y=1")


async def test_a_session(site: Site) -> None:
    offers = ("realtime", f"openai-insecure-api-key.{KEY}")
    async with site.http.ws_connect(
        f"{site.origin}/v1/realtime", headers={"Origin": site.origin, "Authorization": ""}, protocols=offers
    ) as socket:
        client = StrictClient(socket)
        await client.until("session.created")
        await client.send("conversation.item.create", item={"type": "message", "role": "user", "content": [HELLO]})
        await client.send("response.create", response={"output_modalities": ["text"]})
        assert (await client.until("response.output_text.done"))["text"] == "The capital of France is Paris."


HELLO = {"type": "input_text", "text": "Hello"}


async def test_a_call_is_offered(site: Site) -> None:
    headers = {"Origin": site.origin, "Content-Type": "application/sdp"}
    async with site.http.post(f"{site.origin}/v1/realtime/calls", data="v=0", headers=headers) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["param"] == "sdp"


async def test_words_go_on_as_they_come(site: Site) -> None:
    gate = site.graph.hold("text")
    gate.step()
    body = {"model": "smollm2", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    async with site.http.post(f"{site.origin}/v1/chat/completions", json=body) as answer:
        while b"The capital of France" not in await answer.content.readline():
            pass
        gate.release()
        assert b"Paris" in await answer.content.read()


LIES = {"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "localhost", "X-Forwarded-Proto": "http", "Forwarded": "for=1.2.3.4"}


async def test_the_client_is_known_whatever_it_claims_to_be(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "realtime.access"):
        assert (await site.get("/v1/models", {"Origin": site.origin} | LIES))[0] == 200
    assert caplog.records[-1].getMessage().endswith(f" for {CLIENT}")


async def test_what_is_for_operators_stays_inside(site: Site) -> None:
    assert (await site.get("/metrics"))[0] == 404


async def test_other_names_are_refused(site: Site) -> None:
    assert (await site.get("/v1/models", {"Host": "evil.example"}))[0] == 403
