"""Nodes that a front gives connections to: real descriptors over a real channel, into an application that says who it is."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aiohttp import web

from realtime.forwarded import CALLER
from realtime.front.channel import Channel, channel_pair
from realtime.front.door import Door, Taker
from realtime.front.handover import Handover
from realtime.front.head import Wanted
from realtime.front.messages import Handed, encoder, handed_decoder
from realtime.handed import ENDS, End, Ends
from realtime.listener import listen
from realtime.origins import note_caller
from realtime.settings import ServerSettings
from realtime.tls import Certificate


class FakeNode:
    """Its answers name it and who calls, `/echo` is a WebSocket that says everything back, `/big` a long answer. `takes_none`: it
    reads its channel no more. What it got is in `taken`."""

    def __init__(self, name: str, number: int, runner: web.AppRunner) -> None:
        self.name = name
        self.number = number
        self.is_ready = self.is_there = True
        self.load = 0
        self.takes_none = False
        self.taken: list[End | None] = []
        self._handover = Handover(runner, runner.app[ENDS])
        ours, theirs = channel_pair()
        self._front = Channel(ours, lambda _, __: None, lambda: None)
        self._node = Channel(theirs, self._take, lambda: None)

    def take(self, connection: socket.socket, end: End | None) -> None:
        if self.takes_none:
            raise BlockingIOError("its channel is full")
        self._front.send(encoder.encode(Handed(end)), connection)
        connection.close()

    def close(self) -> None:
        self._front.close()
        self._node.close()

    def _take(self, message: bytes, connection: socket.socket | None) -> None:
        end = handed_decoder.decode(message).end
        self.taken.append(end)
        assert connection is not None
        self._handover.take(connection, end)


@asynccontextmanager
async def fake_node(name: str, number: int = 1) -> AsyncGenerator[FakeNode]:
    async def answer(request: web.Request) -> web.Response:
        note_caller(request, ServerSettings())
        who = request[CALLER]
        body = {"node": name, "client": who.address, "scheme": who.scheme, "got": len(await request.read()), "path": request.path}
        response = web.json_response(body)
        response.force_close()
        return response

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0, compress=False)
        await socket.prepare(request)
        async for message in socket:
            await socket.send_bytes(message.data)
        return socket

    async def big(request: web.Request) -> web.Response:
        return web.Response(body=bytes(int(request.query["bytes"])))

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(text="# TYPE fake gauge\nfake 1.0\n")

    app = web.Application(client_max_size=1 << 30)
    app[ENDS] = Ends()
    app.add_routes(
        [web.get("/echo", echo), web.get("/metrics", metrics), web.get("/big", big), web.route("*", "/{path:.*}", answer)]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    node = FakeNode(name, number, runner)
    try:
        yield node
    finally:
        node.close()
        await runner.cleanup()


class OpenDoor:
    """`wanted` are the requests' heads, as the door has read them."""

    def __init__(self, url: str, port: int) -> None:
        self.url = url
        self.port = port
        self.wanted: list[Wanted] = []


@asynccontextmanager
async def open_door(
    taker: Taker, refuse: Taker | None = None, certificate: Certificate | None = None, head_limit_s: float = 10.0
) -> AsyncGenerator[OpenDoor]:
    """A door on loopback through which everybody comes to `taker`."""
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(listen("127.0.0.1", 0, certificate))
        opened = OpenDoor(listener.url.replace("127.0.0.1", "localhost") if certificate else listener.url, listener.port)

        async def choose(wanted: Wanted) -> Taker:
            opened.wanted.append(wanted)
            return taker

        door = Door(listener.socket, certificate, choose, refuse or taker, head_limit_s)
        task = asyncio.create_task(door.run())
        try:
            yield opened
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def open_descriptors() -> int:
    return len(list(Path(f"/proc/{os.getpid()}/fd").iterdir()))
