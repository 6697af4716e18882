"""A picture as server-sent events: as it looks on the way, and when it is finished."""

import time
from contextlib import aclosing
from typing import Literal, TypeAlias

from aiohttp import web
from msgspec.structs import replace

from engines.requests import RequestFailed
from realtime.context import AppContext
from realtime.errors import refusal
from realtime.rest.event_stream import EventStream
from realtime.rest.images_body import ImagesBody
from realtime.rest.images_records import ImageEvent, ImageUsage, as_json_text
from realtime.rest.painting import Order, Shown, paint
from realtime.rest.picture_timing import picture_timing
from realtime.rest.stopwatch import Stopwatch

EventFamily: TypeAlias = Literal["image_generation", "image_edit"]


async def stream_image(
    request: web.Request, context: AppContext, body: ImagesBody, order: Order, family: EventFamily, watch: Stopwatch
) -> web.StreamResponse:
    """Raises RequestFailed; once something is out it is told there, too."""
    events = EventStream(request)
    try:
        async with aclosing(paint(context, order, watch)) as pictures:
            async for shown in pictures:
                event = _event(body, order, family, shown, watch)
                await events.send_named(event.type, event)
    except RequestFailed as failed:
        if events.started:
            await events.send({"error": refusal(failed).body})
        raise
    return await events.end()


def _event(body: ImagesBody, order: Order, family: EventFamily, shown: Shown, watch: Stopwatch) -> ImageEvent:
    seen = ImageEvent(
        type=f"{family}.partial_image",
        created_at=int(time.time()),
        b64_json=as_json_text(shown.data),
        size=shown.size,
        output_format=body.format,
    )
    if shown.preview is not None:
        return replace(seen, partial_image_index=shown.preview)
    usage, timing = ImageUsage(pictures=1), picture_timing(watch.timing(), [shown.reuse])
    return replace(seen, type=f"{family}.completed", usage=usage, seed=order.picture.seed, metrics=timing)
