"""A multipart form of files and a few short fields, none of it trusted."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

from aiohttp import BodyPartReader, web
from aiohttp.http import HttpProcessingError

from realtime.errors import Invalid, Refusal
from realtime.rest.receiving import arriving

READ_BYTES = 64 << 10
MAX_PARTS = 64
MAX_FIELDS_BYTES = 64 << 10

FileTaker: TypeAlias = Callable[[AsyncIterator[bytes]], Awaitable[None]]
"""Takes a file's pieces as they come. Raises Refusal."""


class FormReader:
    """`file_taker` says who takes the part of this name; None: it is a field. `most_fields_bytes`: of all fields together, their
    names included."""

    def __init__(
        self, request: web.Request, file_taker: Callable[[str], FileTaker | None], most_fields_bytes: int = MAX_FIELDS_BYTES
    ) -> None:
        self._request = request
        self._file_taker = file_taker
        self._most_fields_bytes = most_fields_bytes
        self._fields: dict[str, str] = {}
        self._fields_bytes = 0

    async def read(self) -> dict[str, str]:
        """The fields, when the whole form is there. Raises Refusal."""
        if self._request.content_type != "multipart/form-data":
            raise Refusal(f"body: expected multipart/form-data, got {self._request.content_type}", code="invalid_content_type")
        try:
            await self._read_parts()
        except (ValueError, HttpProcessingError) as broken:
            message = f"body: expected multipart/form-data, got something broken ({broken})"
            raise Refusal(message, code="invalid_body") from broken
        return self._fields

    async def _read_parts(self) -> None:
        parts = await self._request.multipart()
        count = 0
        while (part := await arriving(self._request, parts.next())) is not None:
            count += 1
            if count > MAX_PARTS:
                raise Refusal(f"body: expected at most {MAX_PARTS} fields, got more", status=413, code="too_many_fields")
            if not isinstance(part, BodyPartReader):
                raise Refusal("body: expected plain fields, got a form within the form", code="invalid_body")
            name = part.name or "body"
            taker = self._file_taker(name)
            await (self._keep(part, name) if taker is None else taker(self._pieces(part)))

    async def _pieces(self, part: BodyPartReader) -> AsyncIterator[bytes]:
        while data := await arriving(self._request, part.read_chunk(READ_BYTES)):
            yield data

    async def _keep(self, part: BodyPartReader, name: str) -> None:
        if name in self._fields and not name.endswith("[]"):
            raise Invalid(name, "one value", "a second one")
        value = bytearray()
        self._count(name, len(name))
        async for data in self._pieces(part):
            self._count(name, len(data))
            value += data
        try:
            self._fields[name] = value.decode()
        except UnicodeDecodeError as broken:
            raise Invalid(name, "text in UTF-8", bytes(value[:40])) from broken

    def _count(self, name: str, more_bytes: int) -> None:
        self._fields_bytes += more_bytes
        if self._fields_bytes > self._most_fields_bytes:
            expected = f"at most {self._most_fields_bytes} bytes in all fields together"
            raise Invalid(name, expected, f"{self._fields_bytes} and more")


def too_large(field: str, limit_bytes: int) -> Refusal:
    return Refusal(f"{field}: expected at most {limit_bytes} bytes, got more", status=413, code="file_too_large", field=field)
