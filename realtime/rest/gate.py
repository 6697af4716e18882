"""One-shot requests come in by the same gate as sessions, for as long as they are worked on."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web

from realtime.context import CONTEXT
from realtime.guard import PRINCIPAL
from realtime.health import check_open
from realtime.rest.request_ids import new_id
from realtime.turned_away import turned_away
from sessions.admission.admission import Applicant, NotAdmitted
from sessions.admission.seats import REQUEST
from sessions.store.interface import StoreDown
from sessions.store.records import Priority
from sessions.store.records import Refusal as Reason


@asynccontextmanager
async def admitted(request: web.Request) -> AsyncGenerator[None]:
    """Around the work on a request whose body is there. Raises Refusal: 503 when its turn does not come soon."""
    context = request.app[CONTEXT]
    applicant = Applicant(
        session_id=new_id("req"),
        principal=request[PRINCIPAL],
        kind=REQUEST,
        priority=Priority.BATCH,
        wait_s=context.admission.settings.request_wait_s,
    )
    try:
        async with context.admission.seat(applicant):
            yield
    except (NotAdmitted, StoreDown) as failure:
        if isinstance(failure, NotAdmitted) and failure.reason is Reason.WAITED:
            check_open(context)  # what it waited for may be a model that loads
        raise turned_away(failure) from failure
