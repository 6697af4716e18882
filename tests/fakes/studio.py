"""Nodes that make films over a FakeGraph, with a store in memory that a test may cut off from any of them, and whose time is the
test's."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from engines.parameters import Picture
from fakes.graph import FakeGraph
from fakes.store_time import StoreTime
from sessions.admission.admission import Admission
from sessions.admission.node import Leases, Node, NodeIdentity
from sessions.admission.seats import Seats
from sessions.admission.settings import AdmissionSettings
from sessions.billing import Billing
from sessions.identity.principal import Principal, Scope
from sessions.identity.tenants import Tenants
from sessions.jobs.film import FilmWish
from sessions.jobs.jobs import Jobs
from sessions.jobs.settings import VideoSettings
from sessions.store.interface import StoreDown
from sessions.store.job_records import JobSeen, JobsFull, JobState, NewJob
from sessions.store.memory import MemoryStore

LEASE_S = 10.0
QUICKER = 100
"""Sleeps of jobs last so much shorter."""
WISH = FilmWish(
    model="director-1",
    prompt="a cat",
    picture=Picture(width=32, height=32, frames=3, steps=4),
    frames_per_s=8,
    size="32x32",
    seconds="0.375",
)


def someone(tenant: str = "t") -> Principal:
    return Principal(tenant=tenant, key_id="key", scopes=frozenset(Scope))


class CutJobStore(MemoryStore):
    """Nodes in `cut` do not reach what it has of jobs. A post that is `late` is carried out and not answered."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        super().__init__(now_us)
        self.cut: set[str] = set()
        self.late = asyncio.Event()
        self.is_late = False

    async def post_job(self, job: NewJob, most: int, most_of_tenant: int) -> JobSeen | JobsFull:
        self._check(job.node)
        posted = await super().post_job(job, most, most_of_tenant)
        if self.is_late:
            self.late.set()
            await asyncio.Event().wait()
        return posted

    async def report_jobs(self, node: str, progress: Mapping[str, int | None], lease_s: float) -> frozenset[str]:
        self._check(node)
        return await super().report_jobs(node, progress, lease_s)

    async def end_job(self, job_id: str, node: str, state: JobState, outcome: bytes) -> bool:
        self._check(node)
        return await super().end_job(job_id, node, state, outcome)

    def _check(self, node: str) -> None:
        if node in self.cut:
            raise StoreDown("the line is cut", 0.1)


class Studio:
    """One node."""

    def __init__(self, jobs: Jobs, graph: FakeGraph, node: Node, billing: Billing) -> None:
        self.jobs = jobs
        self.graph = graph
        self.node = node
        self.billing = billing

    async def ask(self, tenant: str = "t", wish: FilmWish = WISH, uploads: Mapping[str, bytes] | None = None) -> str:
        return (await self.jobs.create(someone(tenant), wish, uploads or {})).job_id

    async def seen(self, job_id: str, state: JobState, progress: int = 0, tenant: str = "t") -> JobSeen:
        """When it is in this state, and so far."""
        async with asyncio.timeout(10):
            while True:
                seen = await self.jobs.look(tenant, job_id)
                assert seen is not None
                if seen.state is state and seen.progress >= progress:
                    return seen
                await asyncio.sleep(0)


class Studios:
    """Of one store. `folder` is seen by all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.time = StoreTime()
        self.store = CutJobStore(self.time.now_us)

    @asynccontextmanager
    async def studio(self, name: str = "a", host: str = "host", folder: str = "", **settings: int) -> AsyncGenerator[Studio]:
        identity, graph = NodeIdentity(node=name, host=host), FakeGraph()
        admission = AdmissionSettings()
        seats = Seats(identity, admission, 1, {}, dict, {})
        node = Node(self.store, identity, seats.capacity, seats.reserve, leases=Leases(lease_s=LEASE_S))
        node.set(ready=True)
        gate = Admission(node, admission, Tenants({}), seats)
        billing = Billing(self.store, 1.0, asyncio.get_running_loop().time)
        videos = VideoSettings(directory=str(self.folder / folder), keep_s=100.0, **settings)
        jobs = Jobs(self.store, node, gate, billing, graph, videos, sleep=_quickly)
        async with node.running(), billing.running(), jobs.running():
            yield Studio(jobs, graph, node, billing)

    def films(self) -> list[Path]:
        """Also unfinished ones."""
        return [path for path in self.folder.rglob("*") if path.is_file()]

    async def nothing_left(self) -> None:
        """Until there are no films any more."""
        async with asyncio.timeout(5):
            while self.films():  # noqa: ASYNC110 (files ring no bell)
                await asyncio.sleep(0.005)


async def _quickly(seconds: float) -> None:
    await asyncio.sleep(seconds / QUICKER)
