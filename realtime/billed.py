"""What tenants have used is told to the store while the server runs, for those sessions, too, whose node has died."""

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from realtime.context import CONTEXT
from sessions.retention.orphans import Orphans
from sessions.store.settings import RENEWALS_IN_A_LEASE


async def run_billing(app: web.Application) -> AsyncIterator[None]:
    """A cleanup context of the application: outlives all that is billed."""
    context = app[CONTEXT]
    node = context.node
    orphans = Orphans(context.store, node.identity.node, node.leases.lease_s / RENEWALS_IN_A_LEASE, context.voice_sessions.forget)
    async with context.billing.running(), asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(orphans.look_after())
        yield
        looking.cancel()
