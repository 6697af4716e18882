"""A picture out of the graph, whatever the response's form."""

from collections.abc import AsyncGenerator, Mapping

import msgspec

from engines.messages.to_worker import ServiceClass
from engines.models.diffusion import PREVIEW
from engines.parameters import Development, Picture
from engines.payloads import Array, Scalar
from engines.requests import Request
from realtime.context import AppContext
from realtime.rest.picture_timing import Reuse, reuse
from realtime.rest.request_ids import new_id
from realtime.rest.stopwatch import Stopwatch
from sessions.uploads import feed
from sessions.usage import PICTURES


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """`files` are uploads as they came, by their fields: image, image[1], …, mask."""

    prompt: str
    files: Mapping[str, bytes]
    picture: Picture
    development: Development


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A picture as a file, or as the base64 of one. `preview` counts from 0; None: it is finished."""

    data: memoryview
    format: str
    width: int
    height: int
    preview: int | None
    reuse: Reuse | None

    @property
    def size(self) -> str:
        return f"{self.width}x{self.height}"


async def paint(context: AppContext, order: Order, watch: Stopwatch) -> AsyncGenerator[Shown]:
    """Previews, then the picture. Raises RequestFailed."""
    request = Request(
        request_id=new_id("img"),
        entry="pixels" if order.files else "painter",
        outputs=("image",),
        parameters={"pixels": order.picture, "painter": order.picture, "developer": order.development},
        service_class=ServiceClass.BATCH,
    )
    async with await context.graph.submit(request) as stream:
        watch.follow(stream)
        await feed(stream, order.prompt, order.files)
        async for delivery in stream:
            file = delivery.payload.arrays.get("bytes")
            if file is None:
                continue  # how far it is
            shown = _shown(file, delivery.payload.attributes)
            if shown.preview is None:
                watch.usage.add(PICTURES, 1)
            yield shown


def _shown(file: Array, told: Mapping[str, Scalar]) -> Shown:
    preview = told.get(PREVIEW)
    return Shown(
        data=file.data,
        format=str(told["format"]),
        width=int(told["width"]),
        height=int(told["height"]),
        preview=None if preview is None else int(preview),
        reuse=reuse(told),
    )
