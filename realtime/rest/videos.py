"""`/v1/videos`: films as jobs, which go on without whoever asked for them."""

import re
from collections.abc import AsyncIterator

import msgspec
from aiohttp import web

from realtime.context import CONTEXT, AppContext
from realtime.errors import RATE_LIMIT, RETRY_AFTER_S, SERVER, Invalid, Refusal, shown
from realtime.guard import PRINCIPAL, check_allowed
from realtime.health import check_not_draining
from realtime.rest.file_sending import send_file
from realtime.rest.video_body import read_video
from realtime.rest.video_records import VideoDeleted, page, video
from realtime.rest.voices import check_model
from realtime.turned_away import turned_away
from sessions.admission.seats import REQUEST
from sessions.jobs.film import FilmMade, outcome_of
from sessions.jobs.jobs import NoMoreJobs
from sessions.store.interface import StoreDown
from sessions.store.job_records import JobSeen

USUAL_PAGE, LONGEST_PAGE = 20, 100
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


async def run_jobs(app: web.Application) -> AsyncIterator[None]:
    """A cleanup context of the application."""
    async with app[CONTEXT].jobs.running():
        yield


async def create_video(request: web.Request) -> web.Response:
    context = request.app[CONTEXT]
    check_not_draining(context)
    body, uploads = await read_video(request)
    known = context.catalogue.films
    model = body.model if body.model is not None or not known else known[0]
    check_model(known, model or "", "videos")
    principal = check_allowed(request, REQUEST, model or "")
    wish = body.wish(model or "")
    try:
        seen = await context.jobs.create(principal, wish, uploads)
    except NoMoreJobs as full:
        raise _full(full) from full
    except StoreDown as down:
        raise turned_away(down) from down
    return _json(video(seen))


async def retrieve_video(request: web.Request) -> web.Response:
    return _json(video(await _found(request)))


async def list_videos(request: web.Request) -> web.Response:
    context, tenant = request.app[CONTEXT], request[PRINCIPAL].tenant
    after, limit, order = request.query.get("after", ""), _limit(request), request.query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise Invalid("order", "'asc' or 'desc'", order)
    if after and not _ID.fullmatch(after):
        raise Invalid("after", "the id of a video", after)
    try:
        found = await context.jobs.page(tenant, after, limit + 1, newest_first=order == "desc")
    except StoreDown as down:
        raise turned_away(down) from down
    return _json(page(found[:limit], has_more=len(found) > limit))


async def delete_video(request: web.Request) -> web.Response:
    context, job_id = request.app[CONTEXT], _asked_id(request)
    try:
        known = await context.jobs.remove(request[PRINCIPAL].tenant, job_id)
    except StoreDown as down:
        raise turned_away(down) from down
    if not known:
        raise _unknown(job_id)
    return _json(VideoDeleted(id=job_id))


async def get_content(request: web.Request) -> web.StreamResponse:
    """The film, or the range of it that is asked for."""
    variant = request.query.get("variant", "video")
    if variant != "video":
        raise Invalid("variant", "'video'", variant)
    seen = await _found(request)
    made = outcome_of(seen)
    if not isinstance(made, FilmMade):
        if made is None:
            raise Refusal(f"video {seen.job_id} is {seen.state.value}: it has no content yet", code="video_not_ready")
        raise Refusal(f"video {seen.job_id} has failed and has no content ({made.message})", code="video_not_ready")
    context = request.app[CONTEXT]
    path = await context.jobs.files.find(made.host, made.file)
    if path is None:
        raise _elsewhere(context, seen, made)
    return await send_file(request, path, "video/mp4", name=f"{seen.job_id}.mp4")


async def _found(request: web.Request) -> JobSeen:
    """Raises Refusal (404, 503)."""
    job_id = _asked_id(request)
    try:
        seen = await request.app[CONTEXT].jobs.look(request[PRINCIPAL].tenant, job_id)
    except StoreDown as down:
        raise turned_away(down) from down
    if seen is None:
        raise _unknown(job_id)
    return seen


def _asked_id(request: web.Request) -> str:
    """Raises Refusal (404)."""
    job_id = request.match_info["video_id"]
    if not _ID.fullmatch(job_id):
        raise _unknown(job_id)
    return job_id


def _limit(request: web.Request) -> int:
    """Raises Refusal."""
    given = request.query.get("limit", str(USUAL_PAGE))
    limit = int(given) if given.isascii() and given.isdecimal() and len(given) < 9 else 0
    if not 1 <= limit <= LONGEST_PAGE:
        raise Invalid("limit", f"1 to {LONGEST_PAGE}", given)
    return limit


def _unknown(job_id: str) -> Refusal:
    message = f"video_id: there is no video {shown(job_id)}, or no longer"
    return Refusal(message, status=404, code="video_not_found", field="video_id")


def _elsewhere(context: AppContext, seen: JobSeen, made: FilmMade) -> Refusal:
    if made.host == context.node.identity.host:
        return Refusal(f"the film of video {seen.job_id} is gone", status=410, type=SERVER, code="video_gone")
    message = f"the film of video {seen.job_id} is on another host, that of node {seen.node}: ask there"
    return Refusal(message, status=421, type=SERVER, code="video_elsewhere")


def _full(full: NoMoreJobs) -> Refusal:
    if full.of_tenant:
        return Refusal(str(full), status=429, type=RATE_LIMIT, code="video_quota_reached")
    return Refusal(str(full), status=503, type=SERVER, code="video_limit_reached", retry_after_s=RETRY_AFTER_S)


def _json(record: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(record), content_type="application/json")
