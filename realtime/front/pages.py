"""What the front answers itself: how it and its nodes are, and that no node can serve."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from realtime.errors import SERVER, Refusal, funnel
from realtime.front.handover import Handover
from realtime.front.node_metrics import of_all
from realtime.front.supervised_node import SupervisedNode
from realtime.handed import ENDS, Ends
from realtime.health import RETRY_S, ReadyReport
from realtime.origins import screen
from realtime.settings import ServerSettings
from realtime.unreadable import log_without_content

PATHS = frozenset(("/healthz", "/readyz", "/metrics"))
"""Asked of the front, for all nodes."""
SHUTDOWN_S = 1.0


class NodeReport(msgspec.Struct, frozen=True):
    ready: bool
    draining: bool


class FrontReport(ReadyReport, frozen=True):
    """That of the workers, as of a server without a front, but ready when any node is."""

    nodes: dict[str, NodeReport]


class Pages:
    """`async with Pages(…).served() as taker`: takes connections like a node. `workers` tells how the shared workers are."""

    def __init__(self, settings: ServerSettings, nodes: Sequence[SupervisedNode], workers: Callable[[], ReadyReport]) -> None:
        self._settings = settings
        self._nodes = nodes
        self._workers = workers

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[Handover]:
        log_without_content()
        app = web.Application(middlewares=[_end_with_this, funnel, self._screen])
        app[ENDS] = Ends()
        app.add_routes([web.get("/healthz", self._healthz), web.get("/readyz", self._readyz)])
        app.add_routes([web.get("/metrics", self._metrics), web.route("*", "/{path:.*}", self._nobody)])
        runner = web.AppRunner(app, shutdown_timeout=SHUTDOWN_S, access_log=None)
        await runner.setup()
        try:
            yield Handover(runner, app[ENDS])
        finally:
            await runner.cleanup()

    @web.middleware
    async def _screen(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        screen(request, self._settings)
        return await handler(request)

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.Response(text="OK")

    async def _readyz(self, _request: web.Request) -> web.Response:
        workers = self._workers()
        ready = any(node.is_ready for node in self._nodes)
        status = "ready" if ready else "loading" if workers.status == "ready" else workers.status
        nodes = {node.name: NodeReport(node.is_ready, node.told().draining) for node in self._nodes}
        body = msgspec.json.encode(FrontReport(status, workers.stages, workers.waiting_for, workers.faults, nodes))
        return web.Response(status=200 if ready else 503, body=body, content_type="application/json")

    async def _metrics(self, _request: web.Request) -> web.Response:
        text = await of_all({node.name: node for node in self._nodes if node.is_there})
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _nobody(self, _request: web.Request) -> web.Response:
        raise Refusal("no node is ready; try again soon", status=503, type=SERVER, code="not_ready", retry_after_s=RETRY_S)


@web.middleware
async def _end_with_this(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Around the funnel: the next request may be for a node, above all when this one was refused as none was ready."""
    response = await handler(request)
    response.force_close()
    return response
