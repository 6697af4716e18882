"""`POST /v1/images/generations` and `/v1/images/edits`: a prompt in, with pictures or without, pictures out."""

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing

import msgspec
from aiohttp import hdrs, web

from realtime.context import CONTEXT, AppContext
from realtime.errors import SERVER, Refusal
from realtime.forwarded import CALLER
from realtime.guard import check_allowed
from realtime.rest.body import read_json
from realtime.rest.gate import admitted
from realtime.rest.images_body import ImagesBody
from realtime.rest.images_records import Image, ImagesHead, ImageUsage, as_json_text
from realtime.rest.images_stream import EventFamily, stream_image
from realtime.rest.painting import Order, Shown, paint
from realtime.rest.picture_form import PictureForm
from realtime.rest.picture_timing import picture_timing
from realtime.rest.sending import Outgoing
from realtime.rest.stopwatch import Stopwatch, measured, server_timing
from realtime.rest.voices import check_model
from realtime.together import together
from sessions.admission.seats import REQUEST


async def create_images(request: web.Request) -> web.StreamResponse:
    with measured(request, "images") as watch:
        body = await read_json(request, ImagesBody)
        return await _answer(request, body, {}, "image_generation", watch)


async def edit_images(request: web.Request) -> web.StreamResponse:
    with measured(request, "image_edits") as watch:
        form = PictureForm(request)
        body = await form.read(ImagesBody)
        if "image" not in form.files:
            raise Refusal("image: expected a picture, got none", code="missing_required_parameter", field="image")
        return await _answer(request, body, form.files, "image_edit", watch)


async def _answer(
    request: web.Request, body: ImagesBody, files: Mapping[str, bytes], family: EventFamily, watch: Stopwatch
) -> web.StreamResponse:
    context = request.app[CONTEXT]
    watch.restart()
    check_allowed(request, REQUEST, painter(context, body.model))
    development = body.development()
    orders = [Order(prompt=body.prompt, files=files, picture=picture, development=development) for picture in body.pictures()]
    async with admitted(request):
        if body.stream:
            return await stream_image(request, context, body, orders[0], family, watch)
        painted = await _all_painted(context, orders, watch)
        return await _whole(request, body, orders, painted, watch)


def painter(context: AppContext, model: str | None) -> str:
    """Whom the request means: the one there is, unless it names one. Raises Refusal (404)."""
    known = context.catalogue.pictures
    if not known:
        raise Refusal("model: nothing here paints pictures", status=404, code="model_not_found", field="model")
    wanted = known[0] if model is None else model
    check_model(known, wanted, "pictures")
    return wanted


async def _all_painted(context: AppContext, orders: Sequence[Order], watch: Stopwatch) -> list[Shown]:
    """Side by side: the engine shares its steps between them. Raises RequestFailed."""
    painted: dict[int, Shown] = {}

    async def paint_one(place: int, order: Order) -> None:
        async with aclosing(paint(context, order, watch)) as pictures:
            async for shown in pictures:
                painted[place] = shown

    await together(*(paint_one(place, order) for place, order in enumerate(orders)))
    if len(painted) < len(orders):
        raise Refusal("the painter has made no picture", status=500, type=SERVER, code="engine")
    return [painted[place] for place in range(len(orders))]


async def _whole(
    request: web.Request, body: ImagesBody, orders: Sequence[Order], painted: Sequence[Shown], watch: Stopwatch
) -> web.StreamResponse:
    """In pieces, one for each picture: as a whole they would hold up the loop for longer than a call's sound can wait."""
    timing = watch.timing()
    head = ImagesHead(
        created=int(time.time()),
        size=painted[0].size,
        output_format=body.format,
        usage=ImageUsage(pictures=len(painted)),
        metrics=picture_timing(timing, [shown.reuse for shown in painted]),
    )
    headers = {hdrs.CONTENT_TYPE: "application/json", "Server-Timing": server_timing(timing)}
    outgoing = Outgoing(request, headers)
    await outgoing.write(msgspec.json.encode(head).removesuffix(b"}") + b',"data":[')
    for place, (order, shown) in enumerate(zip(orders, painted, strict=True)):
        comma = b"," if place else b""
        await outgoing.write(comma + msgspec.json.encode(_image(request, body, order, shown)))
    await outgoing.write(b"]}")
    return await outgoing.end()


def _image(request: web.Request, body: ImagesBody, order: Order, shown: Shown) -> Image:
    if not body.wants_urls:
        return Image(b64_json=as_json_text(shown.data), seed=order.picture.seed)
    path = request.app[CONTEXT].picture_links.keep(bytes(shown.data), shown.format)
    caller = request[CALLER]
    return Image(url=f"{caller.scheme}://{caller.host}{path}", seed=order.picture.seed)
