"""The secret with which a client comes back to its session."""

import hashlib
import hmac
import secrets
from collections import deque
from collections.abc import Callable

MAX_OFFERED = 16
"""Overflow policy `latest`: only a client that has come back so often without an answer knows the oldest."""


class ResumeTokens:
    """Each return offers the client another token, which may be lost on its way.

    One token is known: the client has shown that it has it. Valid are that one and those offered since, in any order and as often
    as they come. An offered token becomes the known one when the client comes back with it, or shows otherwise that it was
    delivered; all others are void then, so a late try with an older one disturbs nobody. Only hashes are kept.
    """

    def __init__(self, new_token: Callable[[], str] = lambda: secrets.token_urlsafe(32)) -> None:
        self._new_token = new_token
        self._known = b""
        self._offered: deque[bytes] = deque(maxlen=MAX_OFFERED)

    def offer(self) -> str:
        token = self._new_token()
        self._offered.append(_hash(token))
        return token

    def use(self, token: str) -> str | None:
        """The next token, or None when this one is not valid."""
        return self.offer() if self.delivered(token) else None

    def delivered(self, token: str) -> bool:
        """The client has this one. False when it is not valid."""
        given = _hash(token)
        if hmac.compare_digest(given, self._known):
            return True
        if not any(hmac.compare_digest(given, offered) for offered in self._offered):
            return False
        self._known = given
        self._offered.clear()
        return True


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
