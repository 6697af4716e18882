"""`/v1/admin/…`: what runs, who waits, who has used what; ending a session, draining a node. For keys with the scope `admin`; a
tenant's keys see and end the tenant's own sessions."""

from aiohttp import web

from realtime.admin import counts, nodes, sessions


def routes() -> list[web.RouteDef]:
    return [*sessions.routes(), *nodes.routes(), *counts.routes()]
