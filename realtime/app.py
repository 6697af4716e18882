"""The whole edge as one aiohttp application. Loads no model code."""

import logging
import time

from aiohttp import web
from aiohttp.typedefs import Handler

from engines import logs
from realtime import admin, health, pages, rest
from realtime.admitting import run_node
from realtime.billed import run_billing
from realtime.context import CONTEXT, AppContext
from realtime.draining import run_draining
from realtime.errors import funnel, mark_started
from realtime.forwarded import CALLER
from realtime.guard import guard
from realtime.handed import ENDS, Ends
from realtime.openai_realtime import client_secrets, endpoint
from realtime.origins import allow_origin
from realtime.picture_links import PATH
from realtime.rest.request_ids import new_id
from realtime.rest.videos import run_jobs
from realtime.unreadable import log_without_content
from realtime.webrtc import endpoint as calls

access = logging.getLogger("realtime.access")

NAME = web.RequestKey("name", str)
"""Under which the logs speak of the request; stock clients show it with their errors."""


def build_app(context: AppContext) -> web.Application:
    log_without_content()
    app = web.Application(
        middlewares=[_log_access, funnel, guard],
        client_max_size=context.settings.max_body_bytes,
    )
    app[CONTEXT] = context
    context.metrics.admission.follow(context.node, context.admission)
    context.voice_sessions.watch = context.metrics.sessions
    context.store.measured_by(context.metrics.store_called)
    app[ENDS] = Ends()
    app.add_routes(
        [
            *health.routes(),
            *pages.routes(),
            *endpoint.routes(),
            *client_secrets.routes(),
            *calls.routes(),
            *rest.routes(),
            *admin.routes(),
        ]
    )
    app.cleanup_ctx.extend((run_node, run_billing, run_jobs, endpoint.run_sessions, calls.run_calls, run_draining))
    app.on_response_prepare.extend((mark_started, allow_origin, _tell_name))
    return app


@web.middleware
async def _log_access(request: web.Request, handler: Handler) -> web.StreamResponse:
    started = time.perf_counter()
    name = request[NAME] = new_id("req")
    with logs.about(request=name), request.app[CONTEXT].drain.working():
        response = await handler(request)
        _told(request, response, took_ms=(time.perf_counter() - started) * 1000)
    return response


def _told(request: web.Request, response: web.StreamResponse, took_ms: float) -> None:
    level = logging.DEBUG if request.path in health.PATHS else logging.INFO  # who watches us asks every few seconds
    client = request[CALLER].address if CALLER in request else request.remote
    path = f"{PATH}…" if request.path.startswith(PATH) else request.path  # who knows the name of a picture may have it
    access.log(level, "%s %s %d in %.0f ms for %s", request.method, path, response.status, took_ms, client)


async def _tell_name(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["x-request-id"] = request[NAME]
