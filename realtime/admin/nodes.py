"""Nodes as the store knows them, and what they are told."""

from aiohttp import web

from realtime.admin.asking import answer, asking_the_store
from realtime.admin.records import NodeList, NodeShown, NodeTold
from realtime.context import CONTEXT
from realtime.errors import Refusal, shown
from sessions.store.records import NodeSeen, Order

PATH = "/v1/admin/nodes"


def routes() -> list[web.RouteDef]:
    return [web.get(PATH, list_nodes), web.post(PATH + "/{node}/drain", drain), web.post(PATH + "/{node}/undrain", undrain)]


async def list_nodes(request: web.Request) -> web.Response:
    with asking_the_store():
        found = await request.app[CONTEXT].store.nodes()
    return answer(NodeList(data=tuple(map(_shown, found))))


async def drain(request: web.Request) -> web.Response:
    """Its sessions move to other nodes at the end of their turns, and it takes no more."""
    return await _order(request, "drain")


async def undrain(request: web.Request) -> web.Response:
    """It takes sessions again, unless it is ending."""
    return await _order(request, "undrain")


async def _order(request: web.Request, verb: str) -> web.Response:
    """Raises Refusal: 404 for one that the store does not know, or knows to be dead."""
    store, name = request.app[CONTEXT].store, request.match_info["node"]
    with asking_the_store():
        living = [seen.node for seen in await store.nodes() if seen.lease_s > 0]
        if name not in living:
            message = f"node: expected one of {', '.join(living) or 'none, as there is none'}, got {shown(name)}"
            raise Refusal(message, status=404, code="node_not_found", field="node")
        await store.order(name, Order(verb, ""))
    return answer(NodeTold(id=name, order=verb), status=202)


def _shown(seen: NodeSeen) -> NodeShown:
    return NodeShown(
        id=seen.node,
        host=seen.host,
        address=seen.address,
        ready=seen.ready,
        draining=seen.draining,
        lease_s=seen.lease_s,
        tickets=seen.tickets,
    )
