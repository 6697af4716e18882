"""The form of a transcription: one file, which is decoded while it comes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from realtime.context import CONTEXT
from realtime.errors import Refusal
from realtime.media.job import MediaJob
from realtime.rest.form_reader import FileTaker, FormReader, too_large


@dataclass
class UploadForm:
    """`open_upload` is called once the file begins to arrive: a client that sends nothing takes no place."""

    request: web.Request
    open_upload: Callable[[], Awaitable[MediaJob]]
    upload: MediaJob | None = None

    async def read(self) -> tuple[MediaJob, dict[str, str]]:
        """The job to which the whole file has gone while it came, and the fields. Raises Refusal."""
        fields = await FormReader(self.request, self._taker).read()
        if self.upload is None:
            raise Refusal("file: expected an audio file, got none", code="missing_required_parameter", field="file")
        self.upload.finish()
        return self.upload, fields

    def _taker(self, name: str) -> FileTaker | None:
        return self._pass_on if name == "file" and self.upload is None else None

    async def _pass_on(self, pieces: AsyncIterator[bytes]) -> None:
        limit_bytes = self.request.app[CONTEXT].settings.max_body_bytes
        size = 0
        async for data in pieces:
            if self.upload is None:
                self.upload = await self.open_upload()
            size += len(data)
            if size > limit_bytes:
                raise too_large("file", limit_bytes)
            await self.upload.write(data)
        if self.upload is None:
            self.upload = await self.open_upload()
