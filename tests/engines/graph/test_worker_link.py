"""The link to a worker: its greeting, its end at every phase, and workers that misbehave."""

import asyncio
import gc
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engines.graph.worker_link import WorkerLink
from engines.messages import to_gateway
from engines.messages.framing import MAX_FRAME_BYTES, FrameError, FrameTooLarge, frame
from engines.messages.to_gateway import Aborted, Report, StageState, StageStatus, StatusChanged, ToGateway, Welcome
from engines.messages.to_worker import PROTOCOL, Abort, Probe
from fakes.worker import FakeWorker

LOADING = StageStatus("s", StageState.LOADING, 4)
READY = StageStatus("s", StageState.READY, 4)


class Gateway:
    """Takes note of what a link tells."""

    def __init__(self) -> None:
        self.heard: list[ToGateway] = []
        self.losses = 0
        self.on_message: Callable[[ToGateway], None] = lambda _: None
        self._moved = asyncio.Event()

    def received(self, link: WorkerLink, message: ToGateway) -> None:
        self._moved.set()
        self.heard.append(message)
        self.on_message(message)

    def lost(self, link: WorkerLink) -> None:
        assert link.is_lost
        self._moved.set()
        self.losses += 1

    async def hears(self, count: int) -> None:
        while len(self.heard) < count:
            self._moved.clear()
            await self._moved.wait()


class Peer:
    """A raw socket that answers whoever connects with these bytes, and hangs up when told to."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "peer")
        self.says = b""
        self.hangs_up = asyncio.Event()
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(self.says)
            await self.hangs_up.wait()
        finally:
            writer.transport.abort()
            self.left.set()


@asynccontextmanager
async def peer(folder: Path, *says: ToGateway | bytes) -> AsyncGenerator[Peer]:
    answering = Peer(folder)
    answering.says = b"".join(word if isinstance(word, bytes) else framed(word) for word in says)
    async with await asyncio.start_unix_server(answering.serve, answering.path):
        yield answering
        answering.hangs_up.set()
        if answering.says:
            await answering.left.wait()


def framed(message: ToGateway) -> bytes:
    return frame(to_gateway.encoder.encode(message))


def welcome(protocol: int = PROTOCOL, *statuses: StageStatus) -> Welcome:
    return Welcome("peer", 7, statuses or (LOADING,), protocol=protocol)


@pytest.mark.parametrize(
    ("says", "error"),
    [
        (welcome(PROTOCOL + 1), f"expected a Welcome with protocol {PROTOCOL}"),
        (Aborted("r"), f"expected a Welcome with protocol {PROTOCOL}"),
        (frame(b"\xc1"), "no message of ours"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", f"at most {MAX_FRAME_BYTES} are allowed"),
    ],
)
async def test_what_is_no_worker_of_ours_is_named(tmp_path: Path, says: ToGateway | bytes, error: str) -> None:
    async with peer(tmp_path, says) as stranger:
        with pytest.raises(FrameError, match=error):
            await WorkerLink.connect(stranger.path, "gateway")


async def test_nobody_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await WorkerLink.connect(str(tmp_path / "nobody"), "gateway")


async def test_a_peer_that_hangs_up_before_its_greeting_is_no_worker(tmp_path: Path) -> None:
    async with peer(tmp_path, b"\0") as stranger:
        stranger.hangs_up.set()
        with pytest.raises(ConnectionError):
            await WorkerLink.connect(stranger.path, "gateway")


async def test_giving_up_on_a_silent_peer_leaves_nothing(tmp_path: Path) -> None:
    async with peer(tmp_path) as silent:
        before = held()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await WorkerLink.connect(silent.path, "gateway")
        silent.hangs_up.set()
        await silent.left.wait()
        await settled()
        assert held() == before


async def test_what_comes_right_after_the_greeting_waits_for_the_receiver(tmp_path: Path) -> None:
    async with peer(tmp_path, welcome(), StatusChanged(READY), Aborted("r")) as worker:
        link = await WorkerLink.connect(worker.path, "gateway")
        assert (link.worker, link.pid, link.stages) == ("peer", 7, {"s": LOADING})
        gateway = Gateway()
        running = asyncio.create_task(link.run(gateway))
        await gateway.hears(2)
        assert gateway.heard == [StatusChanged(READY), Aborted("r")]
        assert link.stages == {"s": READY}
        worker.hangs_up.set()
        await running
        assert gateway.losses == 1


async def test_a_worker_that_ends_between_greeting_and_run_is_lost_once(tmp_path: Path) -> None:
    async with peer(tmp_path, welcome()) as worker:
        link = await WorkerLink.connect(worker.path, "gateway")
        worker.hangs_up.set()
        await worker.left.wait()
        gateway = Gateway()
        await link.run(gateway)
        assert (gateway.heard, gateway.losses) == ([], 1)


async def test_a_link_that_is_closed_before_it_runs_is_lost_once(tmp_path: Path) -> None:
    async with FakeWorker(tmp_path / "w", ["s"]) as worker:
        link = await WorkerLink.connect(worker.socket, "gateway")
        link.close()
        await settled()
        assert link.is_lost
        gateway = Gateway()
        await link.run(gateway)
        assert gateway.losses == 1


async def test_a_run_that_is_cancelled_tells_of_the_loss_before_it_ends(tmp_path: Path) -> None:
    async with FakeWorker(tmp_path / "w", ["s"]) as worker:
        link = await WorkerLink.connect(worker.socket, "gateway")
        gateway = Gateway()
        running = asyncio.create_task(link.run(gateway))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert gateway.losses == 1
        link.send(Probe())


async def test_nonsense_after_messages_is_an_error_and_nothing_after_it_is_heard(tmp_path: Path) -> None:
    async with peer(tmp_path, welcome(), Aborted("a"), frame(b"nonsense"), Aborted("b")) as worker:
        gateway = Gateway()
        link = await WorkerLink.connect(worker.path, "gateway")
        with pytest.raises(FrameError, match="no message of ours"):
            await link.run(gateway)
        assert (gateway.heard, gateway.losses) == ([Aborted("a")], 1)


@pytest.mark.parametrize("left", range(1, len(framed(Aborted("b")))))
async def test_an_end_at_any_byte_of_a_frame_is_a_cut(tmp_path: Path, left: int) -> None:
    async with peer(tmp_path, welcome(), Aborted("a"), framed(Aborted("b"))[:left]) as worker:
        gateway = Gateway()
        link = await WorkerLink.connect(worker.path, "gateway")
        gateway.on_message = lambda _: worker.hangs_up.set()
        with pytest.raises(FrameError, match="cut inside a frame"):
            await link.run(gateway)
        assert (gateway.heard, gateway.losses) == ([Aborted("a")], 1)


async def test_a_receiver_that_raises_ends_the_run_with_that(tmp_path: Path) -> None:
    def fail(message: ToGateway) -> None:
        raise KeyError("a bug")

    async with peer(tmp_path, welcome(), Aborted("a"), Aborted("b")) as worker:
        gateway = Gateway()
        gateway.on_message = fail
        link = await WorkerLink.connect(worker.path, "gateway")
        with pytest.raises(KeyError, match="a bug"):
            await link.run(gateway)
        assert (gateway.heard, gateway.losses) == ([Aborted("a")], 1)


@asynccontextmanager
async def linked(folder: Path) -> AsyncGenerator[tuple[FakeWorker, WorkerLink, Gateway]]:
    async with FakeWorker(folder / "w", ["s"]) as worker:
        link, gateway = await WorkerLink.connect(worker.socket, "gateway"), Gateway()
        running = asyncio.create_task(link.run(gateway))
        yield worker, link, gateway
        link.close()
        await running
        assert gateway.losses == 1


async def test_reports_are_answered_in_order_and_fail_with_the_worker(tmp_path: Path) -> None:
    async with linked(tmp_path) as (worker, link, _):
        assert [type(report) for report in await asyncio.gather(link.report(), link.report())] == [Report, Report]
        asked = [asyncio.create_task(link.report()) for _ in range(2)]
        await asyncio.sleep(0)
        await worker.crash()
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(answer, ConnectionError | Report)
        with pytest.raises(ConnectionError, match="'fake' is gone"):
            await link.report()


async def test_what_is_too_large_is_not_sent_and_the_link_goes_on(tmp_path: Path) -> None:
    async with linked(tmp_path) as (_, link, _gateway):
        with pytest.raises(FrameTooLarge):
            link.send(Abort("x" * MAX_FRAME_BYTES))
        assert isinstance(await link.report(), Report)


async def test_a_worker_that_leaves_too_much_unread_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.graph.worker_link.OUTBOX_LIMIT_BYTES", 4 << 20)
    async with peer(tmp_path, welcome()) as worker:
        gateway = Gateway()
        link = await WorkerLink.connect(worker.path, "gateway")
        running = asyncio.create_task(link.run(gateway))
        await asyncio.sleep(0)
        with pytest.raises(ConnectionAbortedError, match="worker 'peer' left 4194304 bytes unread"):  # noqa: PT012
            for _ in range(20):
                link.send(Abort("x" * (1 << 20)))
            await link.room()
            await running
        assert gateway.losses == 1


async def test_room_is_there_again_when_the_worker_reads(tmp_path: Path) -> None:
    async with linked(tmp_path) as (worker, link, _):
        for number in range(20):
            link.send(Abort(str(number) + "x" * (1 << 20)))
        waiting = asyncio.create_task(link.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        await worker.until(lambda: len(worker.aborted) == 20)
        await waiting


async def test_a_thousand_links_leave_nothing(tmp_path: Path) -> None:
    """Closed, cut, cancelled, and lost while something is asked."""
    async with FakeWorker(tmp_path / "w", ["s"]) as worker:
        before = (0, 0)
        for number in range(1001):
            link, gateway = await WorkerLink.connect(worker.socket, "gateway"), Gateway()
            running = asyncio.create_task(link.run(gateway))
            asked = asyncio.create_task(link.report())
            for _ in range(1 + number % 4):
                await asyncio.sleep(0)
            match number % 3:
                case 0:
                    link.close()
                case 1:
                    await worker.crash()
                case _:
                    running.cancel()
            await asyncio.gather(running, asked, return_exceptions=True)
            assert gateway.losses == 1
            if number == 0:
                await settled()
                before = held()
        await settled()
        assert held() == before


async def settled() -> None:
    """The other side, which runs on this loop, has noticed."""
    for _ in range(20):
        await asyncio.sleep(0)


def held() -> tuple[int, int]:
    """Descriptors and tasks."""
    gc.collect()
    return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
