"""For operators. `/healthz`: the process lives. `/readyz`: it can serve; until then, what is still loading. `/metrics`."""

from collections.abc import Iterable, Mapping

import msgspec
from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from engines.messages.to_gateway import StageState, StageStatus
from realtime.context import CONTEXT, AppContext
from realtime.errors import SERVER, Refusal

RETRY_S = 5
NO_FAULTS: Mapping[str, str] = {}


class ReadyReport(msgspec.Struct, frozen=True):
    """`status`: loading, ready, draining or failed. `faults`: what is wrong with the transport of payloads, by process; it goes
    on by other ways, more slowly, or fails single requests."""

    status: str
    stages: dict[str, StageStatus]
    waiting_for: tuple[str, ...]
    faults: Mapping[str, str]


def report(statuses: Iterable[StageStatus], *, draining: bool, faults: Mapping[str, str] = NO_FAULTS) -> ReadyReport:
    stages = {status.stage: status for status in statuses}
    waiting = tuple(name for name, status in stages.items() if status.state is not StageState.READY)
    if draining:
        state = "draining"
    elif any(status.state is StageState.FAILED for status in stages.values()):
        state = "failed"
    else:
        state = "loading" if waiting or not stages else "ready"
    return ReadyReport(state, stages, waiting, faults)


def loading(statuses: Iterable[StageStatus]) -> list[StageStatus]:
    return [status for status in statuses if status.state is StageState.LOADING]


def check_open(context: AppContext) -> None:
    """Before a session: raises Refusal (503) while models load or when the server is about to end.

    What has failed for good does not close the server: only the answers that need it fail, and say so.
    """
    check_not_draining(context)
    if missing := loading(context.stage_statuses()):
        what = ", ".join(f"{status.stage} ({status.note})" if status.note else status.stage for status in missing)
        raise Refusal(f"not ready, still loading: {what}", status=503, type=SERVER, code="not_ready", retry_after_s=RETRY_S)


def check_not_draining(context: AppContext) -> None:
    """Raises Refusal (503)."""
    if context.drain.begun:
        raise Refusal("the server is stopping", status=503, type=SERVER, code="server_draining", retry_after_s=RETRY_S)


async def healthz(_request: web.Request) -> web.Response:
    return web.Response(text="OK")


async def readyz(request: web.Request) -> web.Response:
    context = request.app[CONTEXT]
    ready = report(context.stage_statuses(), draining=context.drain.begun, faults=context.faults())
    status = 200 if ready.status == "ready" else 503
    return web.Response(status=status, body=msgspec.json.encode(ready), content_type="application/json")


async def metrics(request: web.Request) -> web.Response:
    context = request.app[CONTEXT]
    context.metrics.sessions.count(context.voice_sessions.sessions())
    context.metrics.sound.now = context.voice_sessions.sound
    text = context.metrics.text(await context.worker_reports())
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})


PATHS = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}


def routes() -> list[web.RouteDef]:
    return [web.get(path, handler) for path, handler in PATHS.items()]
