"""`python -m realtime.front.node CHANNEL SPEC`: one node, whose connections come from the front. Both are descriptors."""

import asyncio
import contextlib
import logging
import socket
import sys

import uvloop
from aiohttp import web
from setproctitle import setproctitle

from engines import logs
from engines.launching.supervision import Backoff
from realtime.front.channel import Channel
from realtime.front.handover import Handover
from realtime.front.messages import NodeSpec, Status, encoder, handed_decoder, spec_decoder
from realtime.front.node_process import TELLS_EVERY_S
from realtime.handed import ENDS
from realtime.server import Gateway, be_first, end_at_once
from realtime.settings import api_key
from realtime.signals import on_signals
from sessions.store.address import open_store
from sessions.store.interface import Store, StoreDown

LIKELY_SOON = Backoff(first_s=0.25, limit_s=2.0, patience=8)
"""The front starts a worker again, so that connecting to it is worth a try sooner than starting it would be."""

log = logging.getLogger(__name__)


class Node:
    """The gateway behind a front. Implements realtime.server.Accepts: what it takes comes over the channel."""

    url = "the front"

    def __init__(self, spec: NodeSpec, end: socket.socket, store: Store) -> None:
        self._end = end
        self._changed = asyncio.Event()
        self._handover: Handover | None = None
        self._gateway = Gateway(
            spec.deployment,
            spec.graph,
            api_key(),
            log.info,
            store,
            place=spec.place,
            worker_backoff=LIKELY_SOON,
            on_change=self._changed.set,
        )

    async def run(self) -> None:
        """Until the drain is over. Without a front there is nothing to live for: its workers end with it."""
        on_signals(self._drain, end_at_once)
        channel = Channel(self._end, self._take, end_at_once)
        telling = asyncio.create_task(self._tell(channel))
        try:
            await self._gateway.serve(self)
        finally:
            telling.cancel()
            channel.close()

    async def accept(self, runner: web.AppRunner) -> "Node":
        self._handover = Handover(runner, runner.app[ENDS])
        self._changed.set()
        return self

    def close(self) -> None:
        self._handover = None

    def _drain(self) -> None:
        self._gateway.context.drain.stop()
        self._changed.set()

    def _take(self, message: bytes, connection: socket.socket | None) -> None:
        if connection is None:
            return
        if self._handover is None:  # before we are ready, or at the end
            connection.close()
        else:
            self._handover.take(connection, handed_decoder.decode(message).end)

    async def _tell(self, channel: Channel) -> None:
        while True:
            self._changed.clear()
            try:
                channel.send(encoder.encode(self._status()))
            except OSError as full:
                log.warning("the front does not listen: %s", full)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TELLS_EVERY_S):
                    await self._changed.wait()

    def _status(self) -> Status:
        gateway = self._gateway
        ready = self._handover is not None and gateway.is_open
        return Status(ready, gateway.context.drain.begun, gateway.sessions)


def main(channel: int, told: int) -> None:
    with open(told, "rb") as file:
        spec = spec_decoder.decode(file.read())
    logs.set_up(spec.place.node, spec.deployment.server.log_style)
    setproctitle(f"antiphon {spec.place.node}")
    end = socket.socket(fileno=channel)
    end.set_inheritable(False)  # the media workers must not keep it open
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        be_first(spec.deployment.server)
        try:
            runner.run(_run(spec, end))
        except StoreDown as down:
            log.error("%s", down)
            sys.exit(1)


async def _run(spec: NodeSpec, end: socket.socket) -> None:
    settings = spec.deployment.store
    async with open_store(settings.url, settings.settle_s) as store:
        await Node(spec, end, store).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
