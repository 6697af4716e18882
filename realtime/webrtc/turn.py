"""TURN for those whose UDP does not come through otherwise: passwords that are good for a while, made of a secret that the TURN
server knows, too (coturn: `use-auth-secret`), by the convention "A REST API for access to TURN services"."""

import base64
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable, Mapping

import msgspec

from realtime.webrtc.settings import IceServer, TurnSettings, WebRtcSettings

SECRET_VARIABLE = "ANTIPHON_TURN_SECRET"


class TurnSecretMissing(ValueError):
    """Credentials cannot be made without it."""

    def __init__(self) -> None:
        super().__init__(f"server.webrtc.turn: set {SECRET_VARIABLE} to the TURN server's static-auth-secret")


class ClientIceServer(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser calls RTCIceServer."""

    urls: tuple[str, ...]
    username: str
    credential: str


class Turn:
    """`now_s` is Unix time."""

    def __init__(self, settings: TurnSettings, secret: str, now_s: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._secret = secret.encode(errors="surrogateescape")
        self._now_s = now_s

    def for_clients(self) -> ClientIceServer:
        """With credentials of its own each time."""
        username = f"{int(self._now_s()) + self._settings.ttl_s}:{secrets.token_hex(8)}"
        digest = hmac.new(self._secret, username.encode(), hashlib.sha1).digest()
        return ClientIceServer(urls=self._settings.urls, username=username, credential=base64.b64encode(digest).decode())

    def for_this_server(self) -> IceServer:
        """One of its addresses is enough here."""
        mine = self.for_clients()
        return IceServer(url=mine.urls[0], username=mine.username, credential=mine.credential)

    def links(self) -> tuple[str, ...]:
        """Values of Link headers (RFC 9725, section 4.6)."""
        server = self.for_clients()
        login = f'username="{server.username}"; credential="{server.credential}"; credential-type="password"'
        return tuple(f'<{url}>; rel="ice-server"; {login}' for url in server.urls)


def configured_turn(settings: TurnSettings, environment: Mapping[str, str] = os.environ) -> Turn | None:
    """None when there is no TURN server. Raises TurnSecretMissing."""
    if not settings.urls:
        return None
    secret = environment.get(SECRET_VARIABLE)
    if not secret:
        raise TurnSecretMissing
    return Turn(settings, secret)


def with_relay(settings: WebRtcSettings, turn: Turn | None) -> WebRtcSettings:
    """For one call: what it asks for an address of its own on the TURN server, with fresh credentials."""
    if turn is None:
        return settings
    servers = (*settings.ice_servers, turn.for_this_server())
    return msgspec.structs.replace(settings, ice_servers=servers, turn=TurnSettings())
