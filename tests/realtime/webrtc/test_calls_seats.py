"""However a call fails to come about, its seat is free again, and nothing of it is left."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest_asyncio

from fakes.edge import Edge, ServeEdge
from fakes.rtc_client import RtcClient
from realtime.media.client import MediaClient
from realtime.settings import ServerSettings
from realtime.webrtc.settings import WebRtcSettings
from sessions.admission.settings import AdmissionSettings
from sessions.retention.settings import SessionLimits

PATH = "/v1/realtime/calls"
CONNECT_TIMEOUT_S = 0.4
ONE_SEAT = SessionLimits(maximum_sessions=1)
NOBODY_WAITS = AdmissionSettings(longest_queue=0)


@pytest_asyncio.fixture
async def narrow(serve_edge: ServeEdge, media: MediaClient) -> AsyncIterator[Edge]:
    """One seat, and little patience with those who do not connect."""
    settings = ServerSettings(webrtc=WebRtcSettings(connect_timeout_s=CONNECT_TIMEOUT_S))
    edge = await serve_edge(call_media=media, limits=ONE_SEAT, settings=settings, admission=NOBODY_WAITS)
    async with media.listen():  # its process is up, and belongs to the base
        pass
    yield edge
    await edge.idle()


async def offered(edge: Edge, client: RtcClient) -> tuple[int, str]:
    """Post an offer and do nothing about the answer: status, and location or what was said."""
    headers = {"Content-Type": "application/sdp"}
    async with edge.http.post(edge.url + PATH, data=await client.offer(), headers=headers) as response:
        return response.status, response.headers.get("Location") or await response.text()


async def talks(edge: Edge) -> None:
    """The seat is free: a call comes about, and ends."""
    async with RtcClient() as client:
        await client.call(edge.http, edge.url)
        await client.event("session.created")
    await edge.idle()


def descriptors() -> int:
    return len(list(Path(f"/proc/{os.getpid()}/fd").iterdir()))


async def test_whoever_never_connects_gives_the_seat_back(narrow: Edge) -> None:
    await talks(narrow)
    before, tasks = descriptors(), len(asyncio.all_tasks())
    for _ in range(3):
        async with RtcClient() as silent, RtcClient() as other:
            began_s = asyncio.get_running_loop().time()
            assert (await offered(narrow, silent))[0] == 201
            status, text = await offered(narrow, other)
            assert (status, "session_limit_reached" in text) == (503, True)
            await narrow.idle()
            assert asyncio.get_running_loop().time() - began_s >= CONNECT_TIMEOUT_S
    await talks(narrow)
    assert (descriptors(), len(asyncio.all_tasks())) == (before, tasks)


async def test_start_stop_start_within_a_second(narrow: Edge) -> None:
    async with RtcClient() as first, RtcClient() as second, asyncio.timeout(1):
        _, location = await offered(narrow, first)
        async with narrow.http.post(f"{narrow.url}{location}/hangup") as response:
            assert response.status == 200
        status, location = await offered(narrow, second)
        assert status == 201
        async with narrow.http.delete(narrow.url + location) as response:
            assert response.status == 200
    await talks(narrow)


async def test_a_client_that_leaves_before_the_answer(narrow: Edge) -> None:
    async with RtcClient() as client:
        sdp = await client.offer()
        for turns in range(0, 200, 5):
            async with aiohttp.ClientSession() as http:
                posting = asyncio.create_task(http.post(narrow.url + PATH, data=sdp, headers={"Content-Type": "application/sdp"}))
                for _ in range(turns):
                    await asyncio.sleep(0)
                posting.cancel()
                await asyncio.wait([posting])
    await narrow.idle()
    await talks(narrow)


async def test_a_call_that_is_refused_after_it_took_the_seat(serve_edge: ServeEdge, media: MediaClient) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        settings = ServerSettings(webrtc=WebRtcSettings(udp_ports=(port, port)))
        edge = await serve_edge(call_media=media, limits=ONE_SEAT, settings=settings, admission=NOBODY_WAITS)
        async with RtcClient() as client:
            assert (await offered(edge, client))[0] == 503
        assert (await edge.context.store.census()).active == 0
    await talks(edge)


async def test_a_call_that_breaks_after_it_took_the_seat(serve_edge: ServeEdge, media: MediaClient) -> None:
    broken = True

    def clock() -> float:
        if broken:
            raise RuntimeError("the clock stands still")
        return asyncio.get_running_loop().time()

    edge = await serve_edge(call_media=media, limits=ONE_SEAT, clock=clock)
    async with RtcClient() as client:
        await offered(edge, client)
        await edge.idle()
    broken = False
    await talks(edge)
