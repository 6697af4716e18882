"""A node that drains puts its sessions down: another one takes them up, or this one once it is undrained."""

from collections.abc import AsyncIterator

from aiohttp import web

from realtime.context import CONTEXT, AppContext
from realtime.together import beside


async def run_draining(app: web.Application) -> AsyncIterator[None]:
    """A cleanup context of the application."""
    async with beside(_drain(app[CONTEXT])):
        yield


async def _drain(context: AppContext) -> None:
    while True:
        await context.drain.wait()
        await context.voice_sessions.drain(context.settings.drain_s)
        await context.drain.undone()
