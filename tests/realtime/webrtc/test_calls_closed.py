"""An operator closes a session that is a call: the data channel says so, and the call ends."""

import asyncio

from fakes.edge import Edge
from fakes.rtc_client import RtcClient


async def test_an_operator_closes_a_call(edge: Edge) -> None:
    async with RtcClient() as client:
        await client.call(edge.http, edge.url)
        session_id = (await client.event("session.created"))["session"]["id"]
        async with edge.http.delete(f"{edge.url}/v1/admin/sessions/{session_id}") as answer:
            assert answer.status == 202
        assert (await client.event("error"))["error"]["code"] == "session_closed"
        async with asyncio.timeout(5):
            await edge.idle()
        assert await edge.context.store.look(session_id) is None
