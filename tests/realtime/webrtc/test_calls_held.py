"""A page that is loaded again closes its connection as one that goes for good does: it asks to be waited for."""

import pytest

from fakes.edge import Edge
from fakes.rtc_client import RtcClient


@pytest.mark.parametrize("held", [True, False])
async def test_only_whoever_asks_to_be_held_is_waited_for_after_a_closed_connection(edge: Edge, held: bool) -> None:
    async with RtcClient() as client:
        await call(edge, client, held=held)
        token = (await client.event("session.created"))["resume"]["token"]
    await edge.left_alone()
    assert len(edge.context.voice_sessions.sessions()) == held
    if held:
        async with RtcClient() as again:
            location = await again.call(edge.http, edge.url, resume=token)
            assert "resync" in await again.event("session.created")
            async with edge.http.post(f"{edge.url}{location}/hangup") as goodbye:
                assert goodbye.status == 200
        assert edge.context.voice_sessions.sessions() == ()


async def call(edge: Edge, client: RtcClient, *, held: bool) -> None:
    query, headers = ({"hold": "1"} if held else {}), {"Content-Type": "application/sdp"}
    async with edge.http.post(
        f"{edge.url}/v1/realtime/calls", data=await client.offer(), headers=headers, params=query
    ) as answer:
        assert answer.status == 201
        await client.accept(await answer.text())
