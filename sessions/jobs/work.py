"""One job while it is worked on."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from sessions.identity.principal import Principal
from sessions.jobs.film import FilmWish, JobFault, Outcome


@dataclass(eq=False)
class Work:
    """`uploads` are files by the names that the graph knows them by."""

    job_id: str
    principal: Principal
    wish: FilmWish
    uploads: Mapping[str, bytes]
    progress: int | None = None
    """In per cent; None: it waits."""
    verdict: JobFault | None = None
    """Why it has been stopped."""
    is_stopped: bool = False
    is_forgotten: bool = False
    """It has been deleted: nobody is to be told how it ends."""
    is_ending: bool = False
    """The store is being told."""
    task: asyncio.Task[None] | None = None
    labour: asyncio.Task[Outcome] | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def upload_bytes(self) -> int:
        return sum(map(len, self.uploads.values()))

    def stop(self, verdict: JobFault) -> None:
        self.is_stopped, self.verdict = True, verdict
        if self.labour is not None:
            self.labour.cancel()
