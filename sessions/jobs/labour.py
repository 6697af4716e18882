"""The work on a job, from its turn to its end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from engines.messages.to_gateway import ErrorKind
from engines.requests import Graph, RequestFailed
from sessions.admission.admission import Admission, Applicant, NotAdmitted
from sessions.admission.seats import REQUEST
from sessions.jobs.files import JobFiles, NoRoom
from sessions.jobs.film import DRAINING, NO_ROOM, NOT_WRITTEN, FilmMade, JobFault, Outcome
from sessions.jobs.filming import film
from sessions.jobs.line import Line
from sessions.jobs.work import Work
from sessions.store.interface import StoreDown
from sessions.store.records import Priority, Refusal

log = logging.getLogger(__name__)

BUSY_S, BUSY_TIMES = 5.0, 60
"""Engines that are full, or still loading, are asked again after so long, so often."""
BUSY = (ErrorKind.OVERLOADED, ErrorKind.REPLICA_LOST)
FOR_GOOD = (Refusal.DRAINING, Refusal.TOO_BIG)


class Labour:
    """At most `at_once` jobs are worked on at a time; of those, each waits for a ticket like other one-shot work."""

    def __init__(
        self,
        admission: Admission,
        graph: Graph,
        files: JobFiles,
        at_once: int,
        host: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._admission = admission
        self._graph = graph
        self._files = files
        self._line = Line(at_once)
        self._host = host
        self._sleep = sleep

    async def make(self, work: Work) -> Outcome:
        try:
            async with self._line.turn(work.principal.tenant):
                return await self._in_the_end(work)
        except RequestFailed as failed:
            return JobFault.of(failed)
        except NotAdmitted as refused:
            return DRAINING if refused.reason is Refusal.DRAINING else JobFault(code=refused.reason.value, message=str(refused))
        except NoRoom:
            return NO_ROOM
        except OSError as broken:
            log.error("the film of job %s cannot be written: %s", work.job_id, broken)
            return NOT_WRITTEN

    async def _in_the_end(self, work: Work) -> FilmMade:
        """Whoever has no room for it now is asked again. Raises RequestFailed, NotAdmitted, NoRoom and OSError."""
        busy_times = 0
        while True:
            try:
                return await self._made(work)
            except NotAdmitted as refused:
                if refused.reason in FOR_GOOD:
                    raise
                wait_s = refused.retry_after_s
            except StoreDown as down:
                wait_s = down.retry_after_s
            except RequestFailed as failed:
                busy_times += 1
                if work.progress or failed.kind not in BUSY or busy_times > BUSY_TIMES:
                    raise
                wait_s = BUSY_S
            await self._sleep(wait_s)

    async def _made(self, work: Work) -> FilmMade:
        def told(percent: int) -> None:
            work.progress = percent

        applicant = Applicant(session_id=work.job_id, principal=work.principal, kind=REQUEST, priority=Priority.BATCH)
        async with self._admission.seat(applicant), self._files.writing(work.job_id) as file:
            return await film(self._graph, work.job_id, work.wish, work.uploads, file, self._host, told)
