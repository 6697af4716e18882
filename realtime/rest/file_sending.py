"""A file as a response: whole, or the range of it that is asked for."""

import os
from functools import partial
from pathlib import Path
from typing import BinaryIO

from aiohttp import hdrs, web

from realtime.errors import Refusal
from realtime.rest.sending import Outgoing
from sessions.jobs.in_thread import to_its_end

PIECE_BYTES = 256 << 10


async def send_file(request: web.Request, path: Path, content_type: str, name: str) -> web.StreamResponse:
    """Of a file that never changes: its name is its tag. Raises Refusal (410), and ConnectionResetError for a client that takes
    nothing."""
    file = _File(path)
    try:
        size = await to_its_end(file.open)
        return await _send(request, file, size, content_type, name)
    except FileNotFoundError:
        raise Refusal(f"{name} is gone", status=410, code="gone") from None
    finally:
        file.close()


class _File:
    """Opened and read in threads; closed whatever became of that."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def open(self) -> int:
        """Its size. Raises FileNotFoundError."""
        self._file = self._path.open("rb")
        return os.fstat(self._file.fileno()).st_size

    def read(self, start: int, size: int) -> bytes:
        return b"" if self._file is None else os.pread(self._file.fileno(), size, start)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


async def _send(request: web.Request, file: _File, size: int, content_type: str, name: str) -> web.StreamResponse:
    tag = f'"{name}"'
    headers = {
        hdrs.CONTENT_TYPE: content_type,
        hdrs.ACCEPT_RANGES: "bytes",
        hdrs.ETAG: tag,
        hdrs.CACHE_CONTROL: "private, no-cache",
        hdrs.CONTENT_DISPOSITION: f'inline; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
    }
    asked = _asked_range(request, size, tag)
    if asked is not None and not asked:
        return web.Response(status=416, headers=headers | {hdrs.CONTENT_RANGE: f"bytes */{size}"})
    if asked is not None:
        headers[hdrs.CONTENT_RANGE] = f"bytes {asked.start}-{asked.stop - 1}/{size}"
    span, status = (range(size), 200) if asked is None else (asked, 206)
    if request.method == hdrs.METH_HEAD:
        return web.Response(status=status, headers=headers | {hdrs.CONTENT_LENGTH: str(len(span))})
    outgoing = Outgoing(request, headers)
    outgoing.response.set_status(status)
    outgoing.response.content_length = len(span)
    for start in range(span.start, span.stop, PIECE_BYTES):
        piece = partial(file.read, start, min(PIECE_BYTES, span.stop - start))
        await outgoing.write(await to_its_end(piece))
    return await outgoing.end()


def _asked_range(request: web.Request, size: int, tag: str) -> range | None:
    """Empty: there are no such bytes. None: all; what is not one range of bytes, of this file, is overlooked (RFC 9110, 14.2)."""
    given = request.headers.get(hdrs.RANGE, "")
    if not given.startswith("bytes=") or "," in given or request.headers.get(hdrs.IF_RANGE, tag) != tag:
        return None
    try:
        return range(size)[request.http_range]
    except ValueError:
        return None
