"""A worker that nobody's launcher started: one `antiphon worker` process, and gateways that share it."""

import asyncio
import random
import signal
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engines.connectors.contents import Content, Remote
from engines.connectors.tcp import TcpConnector
from engines.deployment import GraphSettings
from engines.launching.liveness import Patience
from engines.launching.supervision import Backoff
from engines.messages.to_gateway import ErrorKind, StageState
from engines.payloads import Payload
from engines.requests import Delivery, Request, RequestFailed
from engines.runtime import Runtime
from engines.site import Site
from fakes.standalone import Elsewhere, free_place

SOON = Backoff(first_s=0.05, limit_s=0.05)
LIMIT_S = 30
LENIENT = Patience()
HASTY = Patience(busy_s=0.05, idle_s=0.1, answer_s=0.1, hang_s=0.5)


@pytest.fixture(params=[pytest.param("unix", marks=pytest.mark.full), "tcp"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path, both=f"unix:{tmp_path}/private/w.sock" if request.param == "unix" else free_place())


class Gateway(Runtime):
    def __init__(self, settings: GraphSettings, patience: Patience) -> None:
        self._changed = asyncio.Event()
        super().__init__(settings, backoff=SOON, patience=patience, draw=random.Random(1), on_status=self._changed.set)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def ask(self, name: str, *texts: str, output: str = "twice") -> list[Delivery]:
        request = Request(request_id=name, entry="first", outputs=(output,), parameters={})
        async with await self.submit(request) as stream:
            for text in texts:
                await stream.push(Payload(text=text))
            await stream.push(Payload(), final=True)
            return [delivery async for delivery in stream]

    async def texts(self, name: str, *texts: str) -> list[str]:
        return [delivery.payload.text for delivery in await self.ask(name, *texts)]


@asynccontextmanager
async def gateway(settings: GraphSettings, patience: Patience = LENIENT) -> AsyncGenerator[Gateway]:
    runtime = Gateway(settings, patience)
    async with runtime.running():
        yield runtime


async def filled(runtime: Gateway, value: int) -> None:
    """Arrays of this value and of 100 more come back whole."""
    for nbytes in (1 << 16, 3 << 20):
        deliveries = await runtime.ask("r", f"fill {value} {nbytes}", f"fill {value + 100} {nbytes}")
        arrays = [delivery.payload.arrays["filled"].numpy() for delivery in deliveries if delivery.payload.arrays]
        assert [(array.size, set(np.unique(array))) for array in arrays] == [(nbytes, {value}), (nbytes, {value + 100})]


async def test_two_gateways_with_equal_request_ids_never_meet(elsewhere: Elsewhere) -> None:
    async with elsewhere.worker() as process, gateway(elsewhere.settings()) as one, gateway(elsewhere.settings()) as other:
        await one.ready.wait()
        await other.ready.wait()
        mine, theirs = [f"mine {number}" for number in range(40)], [f"theirs {number}" for number in range(40)]
        for _ in range(5):
            answers = await asyncio.gather(one.texts("r", *mine), other.texts("r", *theirs))
            assert answers == [[*mine, ""], [*theirs, ""]]
        (status,) = one.worker_statuses()
        assert (status.worker, status.pid, status.note) == ("both", None, "")
        assert {stage.state for stage in status.stages} == {StageState.READY}
        assert {name: report.stages[0].active for name, report in (await one.reports()).items()} == {"both": 0}
        assert process.returncode is None


async def test_large_payloads_of_two_gateways_never_meet(elsewhere: Elsewhere) -> None:
    async with elsewhere.worker(), gateway(elsewhere.settings()) as one, gateway(elsewhere.settings()) as other:
        await one.ready.wait()
        await other.ready.wait()

        await asyncio.gather(filled(one, 1), filled(other, 2))


async def test_a_worker_that_is_started_again_is_found_by_both(elsewhere: Elsewhere) -> None:
    async with gateway(elsewhere.settings()) as one, gateway(elsewhere.settings()) as other:
        async with elsewhere.worker() as process:
            await one.ready.wait()
            await other.ready.wait()
            running = asyncio.create_task(one.texts("waiting", *["hang"]))
            await one.until(lambda: one.active()["first"] == 1)
            process.send_signal(signal.SIGKILL)
            async with asyncio.timeout(1):
                with pytest.raises(RequestFailed) as failed:
                    await running
            assert failed.value.kind is ErrorKind.REPLICA_LOST
            await other.until(lambda: not other.ready.is_set())
        async with elsewhere.worker():
            for runtime in (one, other):
                await runtime.until(runtime.ready.is_set)
                assert await runtime.texts("r", "a") == ["a", ""]
                assert runtime.worker_statuses()[0].starts == 2


async def test_sigterm_ends_it(elsewhere: Elsewhere) -> None:
    async with elsewhere.worker() as process, gateway(elsewhere.settings()) as one:
        await one.ready.wait()
        process.terminate()
        assert await process.wait() == 0
        await one.until(lambda: bool(one.worker_statuses()[0].note))
        assert elsewhere.addresses["both"] in one.worker_statuses()[0].note


async def test_another_secret_is_told_and_disturbs_nobody(tmp_path: Path) -> None:
    elsewhere = Elsewhere(tmp_path, both=free_place())
    theirs = elsewhere.settings("another secret than the worker has")
    async with elsewhere.worker(), gateway(theirs) as stranger, gateway(elsewhere.settings()) as friend:
        await friend.ready.wait()
        await stranger.until(lambda: "another secret" in stranger.worker_statuses()[0].note)
        await stranger.until(lambda: stranger.stage_statuses()[0].state is StageState.FAILED)
        assert await friend.texts("r", "a") == ["a", ""]


async def test_a_worker_of_another_name_is_not_taken_for_ours(tmp_path: Path) -> None:
    elsewhere = Elsewhere(tmp_path, both=f"unix:{tmp_path}/private/w.sock")
    settings = elsewhere.settings()
    renamed = msgspec.structs.replace(settings, workers={"other": settings.workers["both"]})
    async with elsewhere.worker(), gateway(renamed) as one:
        await one.until(lambda: "expected worker 'other' there, got 'both'" in one.worker_statuses()[0].note)


async def stopped(elsewhere: Elsewhere, patience: Patience) -> str:
    """What a gateway says of a worker that is stopped when it is asked for something, and serves again when it goes on."""
    async with elsewhere.worker() as process, gateway(elsewhere.settings(), patience) as one:
        await one.ready.wait()
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(RequestFailed, match="lost"):
            await one.texts("r", "a")
        note = one.worker_statuses()[0].note
        process.send_signal(signal.SIGCONT)
        await one.until(one.ready.is_set)
        assert await one.texts("r", "a") == ["a", ""]
    return note


async def test_a_stopped_worker_of_this_host_is_lost_as_soon_as_one_of_our_own(elsewhere: Elsewhere) -> None:
    never = Patience(hang_s=1000)
    assert "its process is stopped" in await stopped(elsewhere, never)


async def test_a_worker_of_another_host_that_stands_still_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.launching.remote_worker.this_host", lambda: "another host than the worker's")
    assert "has not answered for" in await stopped(Elsewhere(tmp_path, both=free_place()), HASTY)


async def test_payloads_cross_tcp_as_between_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From worker to worker, and from there to each gateway."""
    fetched: list[Content] = []

    class Counting(TcpConnector):
        async def get(self, content: Content) -> Payload:
            fetched.append(content)
            return await super().get(content)

    def by_tcp(producer: Site, readers: Iterable[Site]) -> str:
        return "tcp"

    monkeypatch.setattr("engines.graph.orchestrator.connector", by_tcp)
    monkeypatch.setattr("engines.connectors.between_hosts.TcpConnector", Counting)
    elsewhere = Elsewhere(tmp_path, one=free_place(), two=free_place())
    async with (
        elsewhere.worker("one"),
        elsewhere.worker("two"),
        gateway(elsewhere.settings()) as one,
        gateway(elsewhere.settings()) as other,
    ):
        await one.ready.wait()
        await other.ready.wait()
        await asyncio.gather(filled(one, 1), filled(other, 2))
    assert [content.by for content in fetched if isinstance(content, Remote)] == ["tcp"] * 8
