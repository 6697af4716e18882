"""The admin paths of a running server, for operators' commands."""

import asyncio
import re
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import aiohttp
import msgspec

from realtime.errors import ErrorBody
from realtime.talk.address import server_address
from realtime.talk.refusals import TalkFailed
from realtime.talk.trust import trusted

T = TypeVar("T", bound=msgspec.Struct)
LIMIT_S = 30.0
_ADDRESS = re.compile("https?://[^/]")


class AdminFailed(Exception):
    """One sentence for the operator."""


class _Failure(msgspec.Struct):
    error: ErrorBody


class AdminClient:
    """`key`: None where the server asks for none. `cacert`: a certificate to trust besides the system's. Raises AdminFailed."""

    def __init__(self, url: str, key: str | None, cacert: Path | None = None) -> None:
        self._address = server_address(url)
        if not _ADDRESS.match(self._address):
            raise AdminFailed(f"--url: expected one such as http://127.0.0.1:8080, got {url!r}")
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        try:
            self._trusted = trusted(cacert)
        except TalkFailed as wrong:
            raise AdminFailed(str(wrong)) from wrong

    def ask(self, method: str, path: str, answer: type[T], query: Mapping[str, str] | None = None) -> T:
        """`path` without /v1/admin. Raises AdminFailed."""
        return asyncio.run(self._ask(method, path, answer, query or {}))

    async def _ask(self, method: str, path: str, answer: type[T], query: Mapping[str, str]) -> T:
        connector = aiohttp.TCPConnector(ssl=self._trusted)
        timeout = aiohttp.ClientTimeout(total=LIMIT_S)
        url = f"{self._address}/v1/admin{path}"
        try:
            async with (
                aiohttp.ClientSession(connector=connector, headers=self._headers, timeout=timeout) as http,
                http.request(method, url, params=query) as response,
            ):
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as failure:
            raise AdminFailed(f"the server at {self._address} does not answer: {failure or 'too slow'}") from failure
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise AdminFailed(_why(body, response.status))
        try:
            return msgspec.json.decode(body, type=answer)
        except msgspec.MsgspecError as wrong:
            raise AdminFailed(f"{url} answers something else than expected: {wrong}") from wrong


def _why(body: bytes, status: int) -> str:
    try:
        return msgspec.json.decode(body, type=_Failure).error.message
    except msgspec.MsgspecError:
        return f"the server answers with HTTP status {status}"
