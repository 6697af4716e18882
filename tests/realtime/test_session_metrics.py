"""What `/metrics` says of sessions: where they stand, who came back and how, which ended by themselves."""

import pytest

from fakes.edge import Edge, ServeEdge
from fakes.store_time import StoreTime
from sessions.retention.settings import SessionLimits
from sessions.store.memory import MemoryStore
from strict_client import Event


async def metrics(edge: Edge) -> dict[str, float]:
    async with edge.http.get(f"{edge.url}/metrics") as answer:
        lines = [line for line in (await answer.text()).splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def dropped(edge: Edge) -> tuple[Event, int]:
    """A session whose client is gone: its `session.created`, and the number of its last event."""
    async with edge.connect() as client:
        await client.socket.close(code=4000)
    await edge.left_alone()
    return client.seen[0], client.seen[0]["resume"]["seq"]


async def test_where_sessions_stand(edge: Edge) -> None:
    await dropped(edge)
    async with edge.connect():
        told = await metrics(edge)
    states = {state: told[f'antiphon_sessions{{kind="voice",state="{state}"}}'] for state in ("active", "detached", "queued")}
    assert states == {"active": 1, "detached": 1, "queued": 0}
    assert told["antiphon_sessions_active"] == 2
    assert told["antiphon_journal_wait_seconds_count"] >= 2


@pytest.mark.parametrize(("asked", "how"), [("", "resync"), ("&last_seq={seq}", "replayed")])
async def test_who_came_back_on_the_same_node(edge: Edge, asked: str, how: str) -> None:
    created, seq = await dropped(edge)
    async with edge.socket(f"/v1/realtime?resume={created['resume']['token']}{asked.format(seq=seq)}") as client:
        await client.next()
    assert (await metrics(edge))[f'antiphon_resumed_total{{how="{how}",where="same"}}'] == 1


async def test_who_came_back_on_another_node(serve_edge: ServeEdge) -> None:
    store = MemoryStore(StoreTime().now_us)
    first, second = await serve_edge(store=store), await serve_edge(store=store, name="edge-2")
    created, seq = await dropped(first)
    async with second.socket(f"/v1/realtime?resume={created['resume']['token']}&last_seq={seq}") as client:
        await client.next()
    told = await metrics(second)
    assert sum(told.get(f'antiphon_resumed_total{{how="{how}",where="other"}}', 0) for how in ("replayed", "resync")) == 1


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (SessionLimits(detached_grace_s=0.05), "detached"),
        (SessionLimits(longest_session_s=0.3), "longest_life"),
        (SessionLimits(idle_limit_s=0.2), "idle"),
    ],
)
async def test_which_ended_by_themselves(serve_edge: ServeEdge, limits: SessionLimits, why: str) -> None:
    edge = await serve_edge(limits=limits)
    async with edge.connect() as client:
        if why == "detached":
            await client.socket.close(code=4000)
        else:
            async for _ in client.socket:
                pass
    await edge.idle()
    assert (await metrics(edge))[f'antiphon_expired_total{{why="{why}"}}'] == 1
