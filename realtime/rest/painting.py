"""A picture out of the graph, whatever the response's form."""

from collections.abc import AsyncGenerator, Iterator, Mapping

import msgspec

from engines.messages.to_worker import ServiceClass
from engines.models.diffusion import PREVIEW
from engines.parameters import Development, Picture
from engines.payloads import Array, Payload, Scalar
from engines.requests import Request, RequestStream
from realtime.context import AppContext
from realtime.rest.request_ids import new_id
from realtime.rest.stopwatch import Stopwatch
from sessions.usage import PICTURES

PIECE_BYTES = 512 << 10
"""Of uploads on their way to the engines: short enough that calls notice nothing."""


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
        await feed(stream, order)
        async for delivery in stream:
            file = delivery.payload.arrays.get("bytes")
            if file is None:
                continue  # how far it is
            shown = _shown(file, delivery.payload.attributes)
            if shown.preview is None:
                watch.usage.add(PICTURES, 1)
            yield shown


async def feed(stream: RequestStream, order: Order) -> None:
    """The prompt with the uploads, in pieces, no faster than they are taken."""
    first = Payload(text=order.prompt)
    for payload in _pieces(order.files):
        await stream.push(first)
        first = payload
    await stream.push(first, final=True)


def _pieces(files: Mapping[str, bytes]) -> Iterator[Payload]:
    for field, data in files.items():
        whole = memoryview(data)
        for start in range(0, max(1, len(data)), PIECE_BYTES):
            piece = whole[start : start + PIECE_BYTES]
            yield Payload(arrays={field: Array("uint8", (len(piece),), piece)})


def _shown(file: Array, told: Mapping[str, Scalar]) -> Shown:
    preview = told.get(PREVIEW)
    return Shown(
        data=file.data,
        format=str(told["format"]),
        width=int(told["width"]),
        height=int(told["height"]),
        preview=None if preview is None else int(preview),
    )
