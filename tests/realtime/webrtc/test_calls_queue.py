"""A full server over HTTP: a call that is asked for again holds its place, and whoever does not know of places is refused."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from fakes.edge import Edge, ServeEdge
from fakes.rtc_client import RtcClient
from realtime.media.client import MediaClient
from realtime.queue_place import session_at
from sessions.admission.settings import AdmissionSettings
from sessions.retention.settings import SessionLimits

PATH = "/v1/realtime/calls"
SDP = {"Content-Type": "application/sdp"}


@pytest_asyncio.fixture
async def narrow(serve_edge: ServeEdge, media: MediaClient) -> AsyncIterator[Edge]:
    """One seat; a place in the waiting room lasts half a second."""
    settings = AdmissionSettings(place_s=0.5, longest_queue=3)
    edge = await serve_edge(call_media=media, limits=SessionLimits(maximum_sessions=1), admission=settings)
    yield edge
    await edge.idle()


async def asked(edge: Edge, sdp: str, query: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    async with edge.http.post(edge.url + PATH + query, data=sdp, headers=SDP) as response:
        told = await response.text()
        body = msgspec.json.decode(told, type=dict[str, Any])["error"] if response.status >= 400 else {"answer": told}
        return response.status, body, dict(response.headers)


async def test_whoever_asks_again_holds_its_place_and_gets_in(narrow: Edge) -> None:
    async with narrow.connect() as first, RtcClient() as one, RtcClient() as two:
        offers = [await one.offer(), await two.offer()]
        places = list[str]()
        for position, sdp in enumerate(offers, start=1):
            status, error, headers = await asked(narrow, sdp, "?queue=")
            assert (status, error["code"], error["type"]) == (503, "session_queued", "server_error")
            assert (error["queue"]["position"], error["queue"]["estimate_s"]) == (position, None)
            assert int(headers["Retry-After"]) == 1
            places.append(error["queue"]["id"])
        assert places[0] != places[1]
        for _ in range(3):
            _, error, _ = await asked(narrow, offers[1], f"?queue={places[1]}")
            assert error["queue"]["id"] == places[1]
            _, error, _ = await asked(narrow, offers[0], f"?queue={places[0]}")
            assert error["queue"] == {"id": places[0], "position": 1, "estimate_s": None}
        await first.socket.close()
        async with asyncio.timeout(5):
            while (await asked(narrow, offers[1], f"?queue={places[1]}"))[1].get("queue", {}).get("position") != 1:
                pass
        location = await one.call(narrow.http, narrow.url, place=places[0])
        event = await one.event("session.created")
        assert event["session"]["id"] == session_at(places[0], "local")
        async with narrow.http.delete(narrow.url + location):
            pass
        await two.call(narrow.http, narrow.url, place=places[1])
        await two.event("session.created")


async def test_a_place_for_which_nobody_asks_is_given_up(narrow: Edge) -> None:
    async with narrow.connect(), RtcClient() as client:
        await asked(narrow, await client.offer(), "?queue=")
        assert (await narrow.context.store.census()).waiting == 1
        async with asyncio.timeout(5):
            while (await narrow.context.store.census()).waiting:  # noqa: ASYNC110 (a queue rings no bell)
                await asyncio.sleep(0.01)


async def test_who_does_not_know_of_places_takes_none(narrow: Edge) -> None:
    async with narrow.connect(), RtcClient() as client:
        status, error, headers = await asked(narrow, await client.offer(), "")
        assert (status, error["code"]) == (503, "session_limit_reached")
        assert "queue" not in error
        assert int(headers["Retry-After"]) >= 1
        assert (await narrow.context.store.census()).waiting == 0


async def test_a_full_waiting_room_says_so(narrow: Edge) -> None:
    async with narrow.connect(), RtcClient() as client:
        sdp = await client.offer()
        codes = [(await asked(narrow, sdp, "?queue="))[1]["code"] for _ in range(4)]
        assert codes == ["session_queued"] * 3 + ["session_limit_reached"]


async def test_a_place_that_has_become_a_session_is_not_another_one(narrow: Edge) -> None:
    name = "0123456789abcdef"
    async with RtcClient() as client, RtcClient() as again:
        await client.call(narrow.http, narrow.url, place=name)
        await client.event("session.created")
        status, error, _ = await asked(narrow, await again.offer(), f"?queue={name}")
        assert (status, error["code"], error["param"]) == (409, "place_taken", "queue")
        assert (await narrow.context.store.census()).active == 1


@pytest.mark.parametrize("name", ["short", "x" * 65, "0123456789abcde{", "%00" * 16, "0123456789abcde%7D"])
async def test_a_name_that_was_never_told_is_refused(narrow: Edge, name: str) -> None:
    async with RtcClient() as client:
        status, error, _ = await asked(narrow, await client.offer(), f"?queue={name}")
        assert (status, error["code"], error["param"]) == (400, "invalid_value", "queue")


def test_the_same_name_is_another_session_for_another_tenant() -> None:
    assert session_at("0123456789abcdef", "acme") != session_at("0123456789abcdef", "umbrella")
    assert len(session_at("0123456789abcdef", "acme")) == len("sess_") + 20
