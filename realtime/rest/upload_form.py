"""A multipart form with a file and a few short fields, none of it trusted."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import BodyPartReader, web
from aiohttp.http import HttpProcessingError

from realtime.context import CONTEXT
from realtime.errors import Invalid, Refusal
from realtime.media.job import MediaJob
from realtime.rest.receiving import arriving

READ_BYTES = 64 << 10
MAX_PARTS = 64
MAX_FIELDS_BYTES = 64 << 10
"""Of all fields together, their names included."""


@dataclass
class UploadForm:
    """`open_upload` is called once the file begins to arrive: a client that sends nothing takes no place."""

    request: web.Request
    open_upload: Callable[[], Awaitable[MediaJob]]
    fields: dict[str, str] = field(default_factory=dict[str, str])
    upload: MediaJob | None = None
    _fields_bytes: int = 0

    async def read(self) -> MediaJob:
        """The job to which the whole file has gone, while it came. Raises Refusal."""
        if self.request.content_type != "multipart/form-data":
            raise Refusal(f"body: expected multipart/form-data, got {self.request.content_type}", code="invalid_content_type")
        try:
            await self._read_parts()
        except (ValueError, HttpProcessingError) as broken:
            message = f"body: expected multipart/form-data, got something broken ({broken})"
            raise Refusal(message, code="invalid_body") from broken
        if self.upload is None:
            raise Refusal("file: expected an audio file, got none", code="missing_required_parameter", field="file")
        self.upload.finish()
        return self.upload

    async def _read_parts(self) -> None:
        parts = await self.request.multipart()
        count = 0
        while (part := await arriving(self.request, parts.next())) is not None:
            count += 1
            if count > MAX_PARTS:
                raise Refusal(f"body: expected at most {MAX_PARTS} fields, got more", status=413, code="too_many_fields")
            if not isinstance(part, BodyPartReader):
                raise Refusal("body: expected plain fields, got a form within the form", code="invalid_body")
            if part.name == "file" and self.upload is None:
                await self._pass_on(part)
            else:
                await self._keep(part, part.name or "body")

    async def _pass_on(self, part: BodyPartReader) -> None:
        limit_bytes = self.request.app[CONTEXT].settings.max_body_bytes
        data = await self._more(part)
        self.upload = await self.open_upload()
        size = 0
        while data:
            size += len(data)
            if size > limit_bytes:
                message = f"file: expected at most {limit_bytes} bytes, got more"
                raise Refusal(message, status=413, code="file_too_large", field="file")
            await self.upload.write(data)
            data = await self._more(part)

    async def _keep(self, part: BodyPartReader, name: str) -> None:
        value = bytearray()
        self._count(name, len(name))
        while data := await self._more(part):
            self._count(name, len(data))
            value += data
        self.fields[name] = value.decode()

    def _count(self, name: str, more_bytes: int) -> None:
        self._fields_bytes += more_bytes
        if self._fields_bytes > MAX_FIELDS_BYTES:
            raise Invalid(name, f"at most {MAX_FIELDS_BYTES} bytes in all fields together", f"{self._fields_bytes} and more")

    async def _more(self, part: BodyPartReader) -> bytes:
        return await arriving(self.request, part.read_chunk(READ_BYTES))
