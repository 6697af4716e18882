"""One film out of the graph, into a file."""

from collections.abc import Callable, Mapping

from engines.messages.to_gateway import ErrorKind
from engines.messages.to_worker import ServiceClass
from engines.models.diffusion import STEP, STEPS
from engines.payloads import Scalar
from engines.requests import Graph, Request, RequestFailed
from sessions.jobs.files import JobFile
from sessions.jobs.film import FilmMade, FilmWish
from sessions.uploads import feed

OUTPUT = "video"
NEARLY = 99
"""Per cent, when all steps are done and the film is not."""


async def film(
    graph: Graph,
    request_id: str,
    wish: FilmWish,
    uploads: Mapping[str, bytes],
    file: JobFile,
    host: str,
    told: Callable[[int], None],
) -> FilmMade:
    """`told` hears in per cent how far it is. Raises RequestFailed, NoRoom and OSError."""
    request = Request(
        request_id=request_id,
        entry="pixels" if uploads else "painter",
        outputs=(OUTPUT,),
        parameters={"pixels": wish.picture, "painter": wish.picture, "developer": wish.development},
        service_class=ServiceClass.BATCH,
    )
    facts: Mapping[str, Scalar] = {}
    async with await graph.submit(request) as stream:
        told(0)
        await feed(stream, wish.prompt, uploads)
        async for delivery in stream:
            attributes = delivery.payload.attributes
            if (data := delivery.payload.arrays.get("bytes")) is not None:
                facts = attributes
                await file.write(data.data)
            elif STEP in attributes:
                told(percent(attributes))
    if not file.size_bytes:
        raise RequestFailed(ErrorKind.ENGINE, "developer", "no film has come of it")
    return FilmMade(
        file=await file.finish(),
        host=host,
        size_bytes=file.size_bytes,
        frames=int(facts["frames"]),
        width=int(facts["width"]),
        height=int(facts["height"]),
    )


def percent(told: Mapping[str, Scalar]) -> int:
    return min(NEARLY, int(100 * float(told[STEP]) / max(1.0, float(told[STEPS]))))
