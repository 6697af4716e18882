"""What admission counts: who waits, what is taken of what there is, what tenants have and have used."""

from collections.abc import Mapping

from aiohttp import web

from realtime.admin.asking import answer, asked_page, asking_the_store
from realtime.admin.records import QueueShown, ResourceShown, SeatsShown, TenantPage, TenantShown
from realtime.context import CONTEXT
from sessions.identity.tenants import Tenants
from sessions.store.records import Census


def routes() -> list[web.RouteDef]:
    return [web.get("/v1/admin/queue", queue), web.get("/v1/admin/seats", seats), web.get("/v1/admin/tenants", list_tenants)]


async def queue(request: web.Request) -> web.Response:
    settings, census = request.app[CONTEXT].admission.settings, await _census(request)
    return answer(
        QueueShown(
            waiting=census.waiting,
            longest_queue=settings.longest_queue,
            longest_wait_s=settings.longest_wait_s,
            estimate_error_s=census.wait_error_s,
        )
    )


async def seats(request: web.Request) -> web.Response:
    census = await _census(request)
    resources = {name: ResourceShown(used=each.used, capacity=each.capacity) for name, each in census.resources.items()}
    calibrated = request.app[CONTEXT].admission.seats.calibrated
    return answer(SeatsShown(active=census.active, lent=census.lent, resources=resources, calibrated=calibrated))


async def list_tenants(request: web.Request) -> web.Response:
    """Those that the operator has named, that have something, and that have used something."""
    context, (after, limit) = request.app[CONTEXT], asked_page(request)
    tenants = context.admission.tenants
    with asking_the_store():
        active, bills = (await context.store.census()).tenants, await context.store.bills()
    names = sorted(name for name in {*tenants.named, *active, *bills} if name > after)
    page = tuple(_shown(name, tenants, active, bills) for name in names[:limit])
    return answer(TenantPage(data=page, next=page[-1].id if len(names) > limit else None))


async def _census(request: web.Request) -> Census:
    with asking_the_store():
        return await request.app[CONTEXT].store.census()


def _shown(name: str, tenants: Tenants, active: Mapping[str, int], bills: Mapping[str, Mapping[str, float]]) -> TenantShown:
    limits = tenants.of(name)
    return TenantShown(
        id=name,
        weight=limits.weight,
        sessions=limits.sessions,
        priority=limits.priority,
        active=active.get(name, 0),
        usage=bills.get(name, {}),
    )
