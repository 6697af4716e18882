"""A prompt with uploaded files on their way into a request."""

from collections.abc import Iterator, Mapping

from engines.payloads import Array, Payload
from engines.requests import RequestStream

PIECE_BYTES = 512 << 10
"""Short enough that calls notice nothing."""


async def feed(stream: RequestStream, prompt: str, files: Mapping[str, bytes]) -> None:
    """All that there is, in pieces, no faster than they are taken. Files are named as the graph knows them: image, image[1], …,
    mask."""
    first = Payload(text=prompt)
    for payload in _pieces(files):
        await stream.push(first)
        first = payload
    await stream.push(first, final=True)


def _pieces(files: Mapping[str, bytes]) -> Iterator[Payload]:
    for field, data in files.items():
        whole = memoryview(data)
        for start in range(0, max(1, len(data)), PIECE_BYTES):
            piece = whole[start : start + PIECE_BYTES]
            yield Payload(arrays={field: Array("uint8", (len(piece),), piece)})
