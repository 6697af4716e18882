"""Why a server opens no session, in words for a person."""

from collections.abc import Mapping
from http import HTTPStatus

import aiohttp
import msgspec


class TalkFailed(Exception):
    """The message is one sentence for a person."""


REASONS: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "a key is needed, in the environment variable ANTIPHON_API_KEY",
    HTTPStatus.FORBIDDEN: "it does not answer to this host name; its operator can allow it",
    HTTPStatus.NOT_FOUND: "there are no realtime sessions at this address; give it as --url http://HOST:PORT",
    HTTPStatus.SERVICE_UNAVAILABLE: "it is full or stopping; try again later",
}


class Readiness(msgspec.Struct):
    """Of what /readyz answers."""

    status: str
    waiting_for: tuple[str, ...] = ()


async def why_refused(http: aiohttp.ClientSession, address: str, status: int) -> str:
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        readiness = await _readiness(http, address)
        if readiness is not None and readiness.status == "loading":
            return f"it is still loading {', '.join(readiness.waiting_for)}; try again in a few seconds"
    return REASONS.get(status, f"it answers with HTTP status {status}")


async def _readiness(http: aiohttp.ClientSession, address: str) -> Readiness | None:
    try:
        async with http.get(f"{address}/readyz") as answer:
            return msgspec.json.decode(await answer.read(), type=Readiness)
    except (aiohttp.ClientError, msgspec.MsgspecError):
        return None
