"""One file over HTTP, which goes on byte for byte where an earlier try, or an earlier run, stopped."""

import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from engines.weights.cache import WeightsError
from engines.weights.progress import Progress

TRIES_WITHOUT_PROGRESS = 5
_BLOCK_BYTES = 1 << 18
_TIMEOUT_S = 30.0
_FIRST_PAUSE_S = 0.5


class DownloadFailed(WeightsError):
    """The file did not come. What came of it stays for the next run."""


class _Broken(Exception):
    """The transfer stopped early; another try may go on."""


class _Response(Protocol):
    status: int | None
    headers: http.client.HTTPMessage

    def read(self, amount: int) -> bytes: ...

    def close(self) -> None: ...


def download(url: str, target: Path, progress: Progress, pause: Callable[[float], None] = time.sleep) -> None:
    """Fetch `url` into `target`, by way of `target`.part. Tries again while bytes keep coming. Raises DownloadFailed."""
    part = target.with_name(f"{target.name}.part")
    stalls = 0
    while True:
        before = _size(part)
        try:
            _transfer(url, part, progress)
        except _Broken as broken:
            stalls = 0 if _size(part) > before else stalls + 1
            if stalls == TRIES_WITHOUT_PROGRESS:
                raise DownloadFailed(f"{target.name} did not arrive ({broken}): run the command again to go on") from broken
            pause(_FIRST_PAUSE_S * 2**stalls)
        else:
            part.replace(target)
            return


def _transfer(url: str, part: Path, progress: Progress) -> None:
    response, offset = _open(url, _size(part))
    try:
        length = response.headers.get("Content-Length")
        total = offset + int(length) if length else 0
        with part.open("ab" if offset else "wb") as out:
            for block in _blocks(response):
                out.write(block)
                progress.at(out.tell(), total)
    finally:
        response.close()
    if total and _size(part) < total:
        raise _Broken(f"{_size(part)} of {total} bytes")


def _open(url: str, offset: int) -> tuple[_Response, int]:
    """The response, and where its first byte belongs: `offset`, or 0 when the server sends the whole again."""
    headers = {"User-Agent": "antiphon", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    try:
        response: _Response = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S, context=_tls()
        )
    except urllib.error.HTTPError as refusal:
        return _after_refusal(refusal, url, offset)
    except (OSError, http.client.HTTPException) as failure:
        raise _Broken(str(failure)) from failure
    resumes = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")
    return response, offset if resumes else 0


def _after_refusal(refusal: urllib.error.HTTPError, url: str, offset: int) -> tuple[_Response, int]:
    refusal.close()
    if refusal.code == 416 and offset:  # nothing lies beyond `offset`: begin again, a checksum decides in the end
        return _open(url, 0)
    if refusal.code >= 500 or refusal.code == 429:
        raise _Broken(f"HTTP {refusal.code}")
    raise DownloadFailed(f"the registry answered HTTP {refusal.code} to {url.rsplit('/', 1)[-1]}")


def _blocks(response: _Response) -> Iterator[bytes]:
    while True:
        try:
            block = response.read(_BLOCK_BYTES)
        except (OSError, http.client.HTTPException) as failure:
            raise _Broken(str(failure)) from failure
        if not block:
            return
        yield block


def _tls() -> ssl.SSLContext:
    """The certificates that pip is told to use, or the system's."""
    return ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE"))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
