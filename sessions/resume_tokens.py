"""The secret with which a client comes back to its session."""

import hashlib
import hmac
import secrets
from collections.abc import Callable


class ResumeTokens:
    """Rotated at each use; the token before stays valid until the new one is first used, since the reply that
    carried the new one may have been lost. Only hashes are kept."""

    def __init__(self, new_token: Callable[[], str] = lambda: secrets.token_urlsafe(32)) -> None:
        self._new_token = new_token
        self._present = b""
        self._previous = b""

    def issue(self) -> str:
        """The first token of a session."""
        token = self._new_token()
        self._present = _hash(token)
        return token

    def use(self, token: str) -> str | None:
        """The next token, or None when this one is not valid."""
        given = _hash(token)
        is_present = hmac.compare_digest(given, self._present)
        is_previous = hmac.compare_digest(given, self._previous)
        if not (is_present or is_previous):
            return None
        if is_present:
            self._previous = self._present
        return self.issue()


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
