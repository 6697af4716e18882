"""What aiortc alone makes of a call, for comparison: `python -m fakes.stock_peer` is a server of which everybody hears himself.

Opus in, PCM, Opus out, by aiortc's own receiver and sender, in one process. Answers `POST /v1/realtime/calls`, prints its port.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import uvloop
from aiohttp import web
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from bench.server import Server

# pyright: reportPrivateUsage=false

PATH = "/v1/realtime/calls"
CONNECTIONS = web.AppKey("connections", dict[str, RTCPeerConnection])


@asynccontextmanager
async def stock_peer() -> AsyncGenerator[Server]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "fakes.stock_peer", stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield Server(f"http://127.0.0.1:{port}", process.pid, 0.0)
    finally:
        process.terminate()
        await process.wait()


async def create(request: web.Request) -> web.Response:
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    call = str(len(request.app[CONNECTIONS]))
    request.app[CONNECTIONS][call] = connection

    def echo(track: MediaStreamTrack) -> None:
        connection.addTrack(track)

    connection.on("track", echo)
    await connection.setRemoteDescription(RTCSessionDescription(await request.text(), "offer"))
    _offer_loopback(connection)
    await connection.setLocalDescription(await connection.createAnswer())
    return web.Response(status=201, text=connection.localDescription.sdp, headers={"Location": f"{PATH}/{call}"})


async def hang_up(request: web.Request) -> web.Response:
    await request.app[CONNECTIONS][request.match_info["call"]].close()
    return web.Response()


def _offer_loopback(connection: RTCPeerConnection) -> None:
    """Which aiortc leaves out."""
    ice = connection.getTransceivers()[0].receiver.transport.transport._connection
    gather = ice.get_component_candidates

    async def gather_here(component: int, addresses: list[str], timeout: int = 5) -> Any:
        return await gather(component, ["127.0.0.1"], timeout)

    ice.get_component_candidates = gather_here


async def main() -> None:
    app = web.Application()
    app[CONNECTIONS] = {}
    app.router.add_post(PATH, create)
    app.router.add_delete(PATH + "/{call}", hang_up)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
