"""Films as jobs: each goes on by itself, whoever is connected, and any node tells how far it is."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress

import msgspec

from engines.requests import Graph
from sessions.admission.admission import Admission
from sessions.admission.node import Node
from sessions.billing import Billing
from sessions.identity.principal import Principal
from sessions.jobs.files import JobFiles
from sessions.jobs.film import FilmWish, packed
from sessions.jobs.labour import Labour
from sessions.jobs.settings import VideoSettings
from sessions.jobs.work import Work
from sessions.jobs.workshop import Workshop
from sessions.store.interface import Store, StoreDown
from sessions.store.job_records import JobSeen, JobsFull, JobState, NewJob
from sessions.store.records import Order

log = logging.getLogger(__name__)

FORGET = "forget"
"""The verb of an order: the job has been deleted."""
TIDY_S = 600.0
HELD_BYTES = 256 << 20
"""Uploads of jobs that are not over, in the memory of a node. Overflow policy `refuse`."""


class NoMoreJobs(Exception):
    """`of_tenant`: it may do something about it."""

    def __init__(self, message: str, *, of_tenant: bool = False) -> None:
        super().__init__(message)
        self.of_tenant = of_tenant


class Jobs:
    """`async with jobs.running()`. `ended` hears how each job of this node went: completed, failed, cancelled."""

    def __init__(
        self,
        store: Store,
        node: Node,
        admission: Admission,
        billing: Billing,
        graph: Graph,
        settings: VideoSettings,
        *,
        ended: Callable[[str], None] = lambda outcome: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._node = node
        self._settings = settings
        self._sleep = sleep
        self.files = JobFiles(settings.place(), node.identity.host, settings.most_bytes)
        labour = Labour(admission, graph, self.files, settings.at_once, node.identity.host, sleep)
        self._workshop = Workshop(store, node, billing, self.files, labour, ended, sleep)
        self._coming_bytes = 0
        node.on_order(self._heed)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """When the block ends, what is not over has failed, as far as the store can be told."""
        async with self._workshop.running(), asyncio.TaskGroup() as tasks:
            tidying = tasks.create_task(self._keep_tidy())
            try:
                yield
            finally:
                tidying.cancel()

    async def create(self, principal: Principal, wish: FilmWish, uploads: Mapping[str, bytes]) -> JobSeen:
        """Raises NoMoreJobs and StoreDown."""
        with self._coming(sum(map(len, uploads.values()))):
            if await self.files.is_full():
                raise NoMoreJobs("there is no room for another video; try again later")
            seen = await self._posted(principal, wish)
            self._workshop.begin(Work(job_id=seen.job_id, principal=principal, wish=wish, uploads=uploads))
        return seen

    async def look(self, tenant: str, job_id: str) -> JobSeen | None:
        """Raises StoreDown."""
        seen = await self._store.job(tenant, job_id)
        return None if seen is None else self._newest(seen)

    async def page(self, tenant: str, after: str, limit: int, *, newest_first: bool) -> tuple[JobSeen, ...]:
        """Raises StoreDown."""
        found = await self._store.jobs(tenant, after, limit, newest_first=newest_first)
        return tuple(map(self._newest, found))

    async def remove(self, tenant: str, job_id: str) -> bool:
        """It stops, here before this returns, elsewhere as soon as its node hears of it; its film is deleted. False: there is no
        such job. Raises StoreDown."""
        removed = await self._store.remove_job(tenant, job_id)
        if removed is None:
            return False
        if removed.node != self._node.identity.node:
            await self._store.order(removed.node, Order(FORGET, job_id))
        await self._workshop.forget(job_id)
        return True

    async def drain(self, limit_s: float) -> None:
        """What waits has failed; what has begun gets so long to come to its end."""
        await self._workshop.drain(limit_s)

    def _heed(self, order: Order) -> None:
        if order.verb == FORGET:
            self._workshop.forget_soon(order.session_id)

    @contextmanager
    def _coming(self, upload_bytes: int) -> Generator[None]:
        """Uploads of a job that is being posted: until it has begun. Raises NoMoreJobs."""
        if self._workshop.upload_bytes + self._coming_bytes + upload_bytes > HELD_BYTES:
            raise NoMoreJobs("too many pictures wait for their turn; try again later")
        self._coming_bytes += upload_bytes
        try:
            yield
        finally:
            self._coming_bytes -= upload_bytes

    async def _posted(self, principal: Principal, wish: FilmWish) -> JobSeen:
        job = NewJob(
            job_id=f"video_{time.time_ns() // 1000:014x}{secrets.token_hex(12)}",
            tenant=principal.tenant,
            node=self._node.identity.node,
            wish=packed(wish),
            lease_s=self._node.leases.lease_s,
            keep_s=self._settings.keep_s,
        )
        try:
            posted = await self._store.post_job(job, self._settings.most, self._settings.most_of_tenant)
        except (StoreDown, asyncio.CancelledError):
            await self._node.say(self._take_back(job))  # it may be there, and nobody will know its id
            raise
        if isinstance(posted, JobsFull):
            yours, all_ = "you have as many videos as you may; delete some first", "the server keeps as many videos as it may"
            raise NoMoreJobs(yours if posted.of_tenant else all_, of_tenant=posted.of_tenant)
        return posted

    async def _take_back(self, job: NewJob) -> None:
        with suppress(StoreDown):  # its lease is never renewed
            await self._store.remove_job(job.tenant, job.job_id)

    def _newest(self, seen: JobSeen) -> JobSeen:
        """This node knows more of its own jobs than it has told yet."""
        progress = self._workshop.progress(seen.job_id)
        if progress is None or seen.ended_at is not None:
            return seen
        return msgspec.structs.replace(seen, state=JobState.IN_PROGRESS, progress=progress)

    async def _keep_tidy(self) -> None:
        while True:
            try:
                if swept := await self.files.sweep(self._store.job_states):
                    log.info("the files of %d jobs that are over are deleted", swept)
            except (StoreDown, OSError) as failure:
                log.info("old videos are swept away later: %s", failure)
            await self._sleep(min(TIDY_S, self._settings.keep_s))
