"""What `/metrics` says of admission, the lease and the store."""

import asyncio
from pathlib import Path

import pytest

from fakes.edge import Edge, ServeEdge
from fakes.faulty_store import FaultyStore
from fakes.graph import FakeGraph
from fakes.redis_server import running_redis
from realtime.metrics import Metrics
from sessions.admission.admission import Applicant, NotAdmitted
from sessions.admission.seats import VOICE
from sessions.admission.settings import AdmissionSettings
from sessions.identity.principal import LOCAL
from sessions.retention.settings import SessionLimits
from sessions.store.address import open_store
from sessions.store.interface import StoreDown


async def metrics(edge: Edge) -> dict[str, float]:
    async with edge.http.get(f"{edge.url}/metrics") as answer:
        return values(await answer.text())


def values(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def applicant(session_id: str, wait_s: float | None = None) -> Applicant:
    return Applicant(session_id=session_id, principal=LOCAL, kind=VOICE, wait_s=wait_s)


async def test_who_is_let_in_waits_and_is_refused(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=SessionLimits(maximum_sessions=1), admission=AdmissionSettings(place_s=0.3))
    seat, waits = edge.context.admission.seat, asyncio.Event()

    async def wait() -> None:
        async with seat(applicant("sess_2"), lambda place: waits.set()):
            pass

    async with seat(applicant("sess_1")):
        waiting = asyncio.create_task(wait())
        await asyncio.wait_for(waits.wait(), 5)
        with pytest.raises(NotAdmitted):
            await seat(applicant("sess_3", wait_s=0)).__aenter__()
        assert (await metrics(edge))['antiphon_queued{kind="voice"}'] == 1
    await waiting
    told = await metrics(edge)
    assert told['antiphon_queued{kind="voice"}'] == 0
    assert told['antiphon_admitted_total{kind="voice"}'] == 2
    assert told['antiphon_refused_total{kind="voice",reason="full"}'] == 1
    assert told['antiphon_admission_wait_seconds_count{kind="voice"}'] == 2
    assert told['antiphon_lease_renewals_total{result="announced"}'] >= 1


async def test_one_shot_requests_are_a_kind(serve_edge: ServeEdge, graph: FakeGraph) -> None:
    edge = await serve_edge()
    body = {"model": "smollm2", "messages": [{"role": "user", "content": "Hello?"}]}
    async with edge.http.post(f"{edge.url}/v1/chat/completions", json=body) as answer:
        assert answer.status == 200
    assert (await metrics(edge))['antiphon_admitted_total{kind="request"}'] == 1


async def test_whom_a_dead_store_keeps_out(serve_edge: ServeEdge) -> None:
    edge = await serve_edge()
    edge.context.node.store = line = FaultyStore(edge.context.store)
    line.down = True
    with pytest.raises(StoreDown):
        await edge.context.admission.seat(applicant("sess_1")).__aenter__()
    assert (await metrics(edge))['antiphon_refused_total{kind="voice",reason="store_down"}'] == 1
    line.down = False


async def test_calls_of_a_real_store_are_timed_and_its_failures_counted(tmp_path: Path) -> None:
    watched = Metrics()
    async with running_redis(tmp_path) as server, open_store(server.url, 0.0) as store:
        store.measured_by(watched.store_called)
        await store.census()
        told = values(watched.text({}).decode())
        assert told['antiphon_store_call_seconds_count{call="census"}'] == 1
        assert not any(name.startswith("antiphon_store_failures_total{") for name in told)
        await server.kill()
        with pytest.raises(StoreDown):
            await store.census()
        assert values(watched.text({}).decode())['antiphon_store_failures_total{call="census"}'] == 1
