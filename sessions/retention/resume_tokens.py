"""The secret with which a client comes back to its session.

Each return offers the client another one, which may be lost on its way: those before are void once it has shown that it has it.
The store knows their hashes alone, and which of them are good.
"""

import hashlib
import re
import secrets

_TOKEN = re.compile(r"(?P<session>[A-Za-z0-9_-]{1,64})\.(?P<secret>[A-Za-z0-9_-]{1,128})")


class ResumeRefused(Exception):
    """Unknown session or wrong token; the two are not told apart."""

    def __init__(self, why: str = "expected the resume token of a session that is still held, got another one") -> None:
        super().__init__(f"{why}; open a new session")


class SessionLost(ResumeRefused):
    """The token is good, and nothing here can go on with the session."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the session is lost: {why}")


class Stopped(ResumeRefused):
    """Whoever came back had not got its session yet when an operator closed it."""

    def __init__(self) -> None:
        super().__init__("the session was closed by an operator of this server")


STILL_HELD = "the session is still being held by another node of this server; try again in a moment"
SETTLING = "the session store is new, or has lost its data; a node that holds the session puts it back; try again in a moment"


class HeldElsewhere(Exception):
    """Another node has the session and does not put it down: it may be gone, and its lease ends. Or it has the session, and the
    store, which has lost its data, does not know it yet."""

    def __init__(self, retry_after_s: float, why: str = STILL_HELD) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class Superseded(Exception):
    """Whoever came back had not got its session yet when a newer connection came for it."""

    def __init__(self) -> None:
        super().__init__("a newer connection has taken this session over")


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def token_of(session_id: str, secret: str) -> str:
    """As the client gets it."""
    return f"{session_id}.{secret}"


def read_token(token: str) -> tuple[str, str] | None:
    """The session's id and the secret; None: nobody has given such a token."""
    found = _TOKEN.fullmatch(token)
    return None if found is None else (found["session"], found["secret"])
