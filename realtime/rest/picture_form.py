"""The form of an edit: pictures, a mask and fields."""

import re
from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec
from aiohttp import web

from realtime.context import CONTEXT
from realtime.errors import Invalid
from realtime.rest.body import wrong_field
from realtime.rest.form_reader import FileTaker, FormReader, too_large

T = TypeVar("T", bound=msgspec.Struct)

MAX_IMAGES = 16
"""OpenAI's limit."""
MAX_FIELDS_BYTES = 512 << 10
"""Two prompts of the longest kind, in whatever script."""
MASK = "mask"
_IMAGE = re.compile(r"image(\[\d*\])?", re.ASCII)


class PictureForm:
    """`files` are named as the graph knows them: those that come as image, image[] or image[3] are image, image[1], … in the
    order of their coming, and a mask is mask."""

    def __init__(self, request: web.Request) -> None:
        self.files: dict[str, bytes] = {}
        self._request = request
        self._limit_bytes = request.app[CONTEXT].settings.max_body_bytes

    async def read(self, shape: type[T]) -> T:
        """The fields as a record. Raises Refusal (400, 408, 413)."""
        return from_fields(await FormReader(self._request, self._taker, MAX_FIELDS_BYTES).read(), shape)

    def _taker(self, part: str) -> FileTaker | None:
        """Raises Invalid."""
        if part == MASK:
            if MASK in self.files:
                raise Invalid(MASK, "one file", "a second one")
            return self._keeps(MASK)
        if _IMAGE.fullmatch(part) is None:
            return None
        count = len(self.files) - (MASK in self.files)
        if count == MAX_IMAGES:
            raise Invalid("image", f"at most {MAX_IMAGES} files", "more")
        return self._keeps(f"image[{count}]" if count else "image")

    def _keeps(self, name: str) -> FileTaker:
        async def keep(pieces: AsyncIterator[bytes]) -> None:
            """All files together may have as much as a body."""
            room = self._limit_bytes - sum(map(len, self.files.values()))
            file = bytearray()
            async for data in pieces:
                file += data
                if len(file) > room:
                    raise too_large(name, self._limit_bytes)
            self.files[name] = bytes(file)

        return keep


def from_fields(fields: dict[str, str], shape: type[T]) -> T:
    """Numbers and truths of a form are written as text. Raises Refusal (400) that names the field."""
    try:
        return msgspec.convert(fields, shape, strict=False)
    except msgspec.ValidationError as wrong:
        raise wrong_field(str(wrong), msgspec.json.encode(fields)) from wrong
