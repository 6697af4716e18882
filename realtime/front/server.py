"""The front as a whole: what the nodes share, the nodes, the door, and an operator's orders."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

import uvloop
from setproctitle import setproctitle

from engines.deployment import GraphSettings, with_weights
from engines.messages.to_gateway import StageState, StageStatus
from engines.runtime import Runtime
from realtime.deployment import Deployment
from realtime.drain import Drain
from realtime.front.control import control_path, serve_control
from realtime.front.door import Door, Taker
from realtime.front.head import Wanted
from realtime.front.messages import NodeSpec
from realtime.front.needs import check_store
from realtime.front.operation import Operation
from realtime.front.pages import PATHS, Pages
from realtime.front.routing import route
from realtime.front.supervised_node import SupervisedNode
from realtime.health import ReadyReport, report
from realtime.keys import check_keys, credentials_of, say_if_open
from realtime.listener import Listener, listen
from realtime.place import Place, host_name
from realtime.progress import Progress, stopping
from realtime.server import check_programs, settle_memory
from realtime.signals import on_signals, renew_on_hang_up
from realtime.tls import Certificate, own_certificate
from realtime.webrtc.turn import configured_turn
from sessions.store.address import open_store
from sessions.store.interface import Store

READY, LOADING = StageState.READY, StageState.LOADING


def run(deployment: Deployment, count: int, api_key: str | None, say: Callable[[str], None]) -> None:
    """Serve with `count` nodes until SIGTERM or SIGINT. Before anything runs, raises NodesNeedStore and what
    realtime.server.run raises."""
    settings = deployment.server
    check_store(deployment.store, count)
    check_keys(deployment, api_key)
    configured_turn(settings.webrtc.turn)
    certificate = own_certificate(settings)
    with listen(settings.host, settings.port, certificate) as listener:
        graph = with_weights(deployment.graph)
        check_programs(graph)
        setproctitle("antiphon front")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(deployment, graph, count, api_key, listener, certificate, say))


async def _serve(
    deployment: Deployment,
    graph: GraphSettings,
    count: int,
    api_key: str | None,
    listener: Listener,
    certificate: Certificate | None,
    say: Callable[[str], None],
) -> None:
    async with open_store(deployment.store.url, deployment.store.settle_s) as store:
        front = Front(deployment, graph, count, store, say)
        on_signals(front.drain.begin, front.hurry)
        if certificate is not None:
            renew_on_hang_up(certificate, front.drain.begin)
        await say_if_open(credentials_of(deployment, api_key, store), say)
        await front.serve(listener, certificate)


class Front:
    def __init__(
        self, deployment: Deployment, graph: GraphSettings, count: int, store: Store, say: Callable[[str], None]
    ) -> None:
        self.drain = Drain()
        self._deployment = deployment
        self._count = count
        self._store = store
        self._say = say
        self._progress = Progress(say, asyncio.get_running_loop().time, on_ready=settle_memory)
        self._runtime = Runtime(graph, logs=deployment.server.log_style, on_status=self._status_changed, shares_workers=True)
        self._nodes: Sequence[SupervisedNode] = ()

    def hurry(self) -> None:
        """What still drains ends now."""
        for node in self._nodes:
            node.hurry()

    async def serve(self, listener: Listener, certificate: Certificate | None) -> None:
        """Until the drain begins; returns when nothing is left."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._runtime.running())
            self._nodes = self._made(await self._runtime.shared(), listener.port)
            own = await stack.enter_async_context(Pages(self._deployment.server, self._nodes, self._workers).served())
            group = await stack.enter_async_context(asyncio.TaskGroup())
            work = [group.create_task(node.run(), name=node.name) for node in self._nodes]
            work.append(group.create_task(Door(listener.socket, certificate, self._chooser(own), own).run(), name="door"))
            control = await serve_control(control_path(listener.port), Operation(self._nodes).obey)
            stack.callback(control.close)
            self._say(f"listening on {listener.url} with {self._count} nodes")
            self._status_changed()
            await self.drain.wait()
            self._say(stopping(self._deployment.server.drain_s))
            await asyncio.gather(*(node.stop() for node in self._nodes))
            for task in work:
                task.cancel()

    def _made(self, graph: GraphSettings, port: int) -> Sequence[SupervisedNode]:
        server = self._deployment.server
        places = [Place(host=host_name(port), number=number) for number in range(1, self._count + 1)]
        return [
            SupervisedNode(
                NodeSpec(deployment=self._deployment, graph=graph, place=place),
                self._store,
                server.drain_s + server.shutdown_s,
                self._status_changed,
            )
            for place in places
        ]

    def _chooser(self, own: Taker) -> Callable[[Wanted], Awaitable[Taker]]:
        async def choose(wanted: Wanted) -> Taker:
            if wanted.path in PATHS:
                return own
            return await route(wanted, self._nodes, self._store) or own

        return choose

    def _workers(self) -> ReadyReport:
        return report(self._runtime.stage_statuses(), draining=self.drain.begun, faults=self._runtime.faults())

    def _status_changed(self) -> None:
        """A node is told of like a stage: it loads, and is ready."""
        if self.drain.begun:
            return
        nodes = [StageStatus(node.name, READY if node.is_ready else LOADING, 0) for node in self._nodes]
        self._progress.update([*self._runtime.stage_statuses(), *nodes])
