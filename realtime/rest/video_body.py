"""What `POST /v1/videos` takes, as JSON or as a form."""

import base64
import binascii
import re
from collections.abc import AsyncIterator, Mapping
from typing import Annotated

import msgspec
from aiohttp import hdrs, web

from engines.parameters import Picture
from realtime.context import CONTEXT
from realtime.errors import Invalid
from realtime.rest.body import read_json, wrong_field
from realtime.rest.form_reader import FileTaker, FormReader, too_large
from realtime.rest.picture_wish import PictureFields
from sessions.jobs.film import FilmWish

FRAMES_PER_S = 16
SECONDS = "4"
"""OpenAI's default."""
MOST_FRAMES = 1_000
MOST_PIXELS = 1 << 29
"""Of all frames together: 580 of 1280x720, which are 1.5 GiB."""
REFERENCE = "input_reference"
REFERENCE_URL = f"{REFERENCE}[image_url]"
REFERENCE_FILE = f"{REFERENCE}[file_id]"
"""As the stock client writes an object into a form."""
PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF")
_SECONDS = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?", re.ASCII)
_DATA_URL = re.compile(r"data:image/(png|jpeg|webp);base64,", re.ASCII)


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    image_url: str | None = None
    file_id: str | None = None


class VideoBody(PictureFields, frozen=True, kw_only=True):
    """`fps` and `frames` are ours: frames in place of `seconds`."""

    seconds: str | float | None = None
    fps: Annotated[int, msgspec.Meta(ge=1, le=60)] | None = None
    frames: Annotated[int, msgspec.Meta(ge=2, le=MOST_FRAMES)] | None = None
    num_frames: object = None
    input_reference: Reference | None = None

    def wish(self, model: str) -> FilmWish:
        """Raises Invalid."""
        frames_per_s = self.fps or FRAMES_PER_S
        frames, seconds = self._length(frames_per_s)
        picture = self.picture(frames=frames, about_frames=self.frames is None)
        _check_size(picture, frames, self.size)
        return FilmWish(
            model=model,
            prompt=self.prompt,
            picture=picture,
            frames_per_s=frames_per_s,
            size=self.size or "auto",
            seconds=seconds,
        )

    def _length(self, frames_per_s: int) -> tuple[int, str]:
        """Frames, and seconds as they are told. Raises Invalid."""
        if self.num_frames is not None:
            raise Invalid("num_frames", "nothing (it is called `frames` here)", self.num_frames)
        if self.frames is not None:
            if self.seconds is not None:
                raise Invalid("frames", "none with seconds: each says how long it is to be", self.frames)
            return self.frames, f"{self.frames / frames_per_s:.3f}".rstrip("0").rstrip(".")
        seconds = SECONDS if self.seconds is None else str(self.seconds)
        frames = round(float(seconds) * frames_per_s) if _SECONDS.fullmatch(seconds) else 0
        if not 2 <= frames <= MOST_FRAMES:
            least_s, most_s = 2 / frames_per_s, MOST_FRAMES / frames_per_s
            raise Invalid("seconds", f"{least_s:g} to {most_s:g}, with {frames_per_s} frames a second", self.seconds)
        return frames, seconds


async def read_video(request: web.Request) -> tuple[VideoBody, Mapping[str, bytes]]:
    """With the picture that it is to begin with, if there is one, as the graph names it. Raises Refusal (400, 408, 413)."""
    if request.content_type == "multipart/form-data":
        return await _VideoForm(request).read()
    if request.headers.get(hdrs.CONTENT_TYPE) and request.content_type != "application/json":
        raise Invalid("body", "application/json or multipart/form-data", request.content_type, code="invalid_content_type")
    body = await read_json(request, VideoBody)
    return body, _uploads(body, None)


class _VideoForm:
    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._limit_bytes = request.app[CONTEXT].settings.max_body_bytes
        self._file: bytes | None = None

    async def read(self) -> tuple[VideoBody, Mapping[str, bytes]]:
        fields: dict[str, object] = dict(await FormReader(self._request, self._taker, self._limit_bytes).read())
        url, file_id = fields.pop(REFERENCE_URL, None), fields.pop(REFERENCE_FILE, None)
        if url is not None or file_id is not None:
            fields[REFERENCE] = {"image_url": url, "file_id": file_id}
        try:
            body = msgspec.convert(fields, VideoBody, strict=False)
        except msgspec.ValidationError as wrong:
            raise wrong_field(str(wrong), msgspec.json.encode(fields)) from wrong
        return body, _uploads(body, self._file)

    def _taker(self, part: str) -> FileTaker | None:
        """Raises Invalid."""
        if part != REFERENCE:
            return None
        if self._file is not None:
            raise Invalid(REFERENCE, "one file", "a second one")
        return self._keep

    async def _keep(self, pieces: AsyncIterator[bytes]) -> None:
        file = bytearray()
        async for data in pieces:
            file += data
            if len(file) > self._limit_bytes:
                raise too_large(REFERENCE, self._limit_bytes)
        self._file = bytes(file)


def _uploads(body: VideoBody, file: bytes | None) -> Mapping[str, bytes]:
    """Raises Invalid. What begins as a picture may still be none: that is told by the job."""
    if body.input_reference is not None:
        if file is not None:
            raise Invalid(REFERENCE, "a file or an object", "both")
        file = _referred(body.input_reference)
    if file is None:
        return {}
    if not file.startswith(PICTURES):
        raise Invalid(REFERENCE, "a picture as PNG, JPEG or WebP", f"{len(file)} bytes of something else")
    return {"image": file}


def _referred(reference: Reference) -> bytes:
    """Raises Invalid."""
    if reference.file_id is not None:
        raise Invalid(f"{REFERENCE}.file_id", "none: this server keeps no files; upload the picture", reference.file_id)
    url = reference.image_url or ""
    if (head := _DATA_URL.match(url)) is None:
        expected = "data:image/png;base64,… (or jpeg, webp): this server fetches nothing"
        raise Invalid(f"{REFERENCE}.image_url", expected, url)
    try:
        return base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise Invalid(f"{REFERENCE}.image_url", f"base64 ({wrong})", url, code="invalid_base64") from wrong


def _check_size(picture: Picture, frames: int, size: str | None) -> None:
    """Raises Invalid."""
    if picture.width is not None and picture.height is not None and picture.width * picture.height * frames > MOST_PIXELS:
        raise Invalid("size", f"at most {MOST_PIXELS} pixels in all frames together", f"{size} with {frames} frames")
