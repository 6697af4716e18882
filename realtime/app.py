"""The whole edge as one aiohttp application. Loads no model code."""

import logging
import time

from aiohttp import web
from aiohttp.typedefs import Handler

from realtime import health, rest
from realtime.context import CONTEXT, AppContext
from realtime.errors import funnel, mark_started
from realtime.guard import allow_origin, guard
from realtime.openai_realtime import endpoint

access = logging.getLogger("realtime.access")


def build_app(context: AppContext) -> web.Application:
    app = web.Application(
        middlewares=[_log_access, funnel, guard],
        client_max_size=context.settings.max_body_bytes,
    )
    app[CONTEXT] = context
    app.add_routes([*health.routes(), *endpoint.routes(), *rest.routes()])
    app.on_response_prepare.extend((mark_started, allow_origin))
    return app


@web.middleware
async def _log_access(request: web.Request, handler: Handler) -> web.StreamResponse:
    started = time.perf_counter()
    response = await handler(request)
    took_ms = (time.perf_counter() - started) * 1000
    access.info("%s %s %d in %.0f ms", request.method, request.path, response.status, took_ms)
    return response
