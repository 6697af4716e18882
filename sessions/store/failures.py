"""What Redis raises, as sessions see it. The words are ours: those of a library could show what was sent, or a password."""

import asyncio
import logging
import re
import socket
import ssl

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthenticationWrongNumberOfArgsError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    InvalidResponse,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

from sessions.store.interface import StoreDown
from sessions.store.sparse_log import SparseLog
from sessions.store.wire import Failure

errors = SparseLog(logging.getLogger(__name__))
"""Of this process: a store in trouble answers every call so."""


class NoPrimary(RedisError):
    """Nobody that was asked knows who has the key."""


_NOT_ALLOWED = "its user may not do what is needed: +@read +@write +@scripting +info +time ~*"
_REASONS: tuple[tuple[type[Exception], str, float], ...] = (
    (BusyLoadingError, "it is loading its data", 1.0),
    (AuthenticationError, "it does not take the user and password of its URL", 5.0),
    (AuthenticationWrongNumberOfArgsError, "it does not take the user and password of its URL", 5.0),
    (NoPermissionError, _NOT_ALLOWED, 5.0),
    (ReadOnlyError, "it is a replica, and takes no writes", 1.0),
    (OutOfMemoryError, "it is out of memory (maxmemory)", 5.0),
    (MasterDownError, "it is a replica that has lost its primary", 1.0),
    (NoPrimary, "nobody knows its primary", 1.0),
    (ClusterDownError, "the cluster is down", 1.0),
    (TryAgainError, "the slot is being moved", 1.0),
    (AskError, "the slot has moved", 1.0),
    (InvalidResponse, "what it says is not the protocol of Redis", 1.0),
    (TimeoutError, "it does not answer", 1.0),
    (ConnectionError, "it cannot be reached", 1.0),
    (asyncio.TimeoutError, "it does not answer", 1.0),
    (OSError, "it cannot be reached", 1.0),
)
_REPLIES = {
    "NOREPLICAS": "too few replicas are connected",
    "NOAUTH": "it wants a user and a password, and its URL has none",
    "BUSY": "it is busy with a script",
    "DENIED": "it is in protected mode: it wants a password, or to be told that it needs none",
    "MISCONF": "it cannot write to its disk",
    "UNKILLABLE": "it is busy with a script",
    "UNBLOCKED": "it has become a replica",
}
"""By the first word of those that the library has no type for."""
_MISSING_FUNCTION = "Function not found"
_KILLED = "killed by user"
_NOT_ALLOWED_INSIDE = "The user executing the script"
_CODE = re.compile(r"[A-Z]{2,20}\b")
_WHAT_WAS_SENT = re.compile(r",? *(with )?args beginning with.*", re.DOTALL)
_UNKNOWN_RETRY_S = 5.0


def store_down(error: Failure) -> StoreDown:
    """Whatever it was: whoever called tries again later. What may be a mistake of ours is logged as an error, without what the
    server repeats of what it was sent."""
    known = _known(error)
    if known is not None:
        return known
    said = _WHAT_WAS_SENT.sub("", str(error))
    errors.error(f"the session store refused a call, {type(error).__name__}: {said[:200]}")
    code = _CODE.match(said)
    return StoreDown(f"it answers with an error ({code[0] if code else 'ERR'}), which is in the log", _UNKNOWN_RETRY_S)


def not_understood(wrong: Exception) -> StoreDown:
    """Of a reply that has another shape than our Functions give it. `wrong` names places in it and types."""
    errors.error(f"a reply of the session store is not understood: {wrong}")
    return StoreDown("it answers what is not understood, see the log", _UNKNOWN_RETRY_S)


def news_left_out(wrong: Exception) -> None:
    errors.error(f"news of the session store are not understood, and left out: {wrong}")


def _known(error: Failure) -> StoreDown | None:
    if (why := _no_connection(error)) is not None:
        return StoreDown(why, 5.0)
    for kind, why, retry_after_s in _REASONS:
        if isinstance(error, kind):
            return StoreDown(why, retry_after_s)
    if is_missing_function(error):
        return StoreDown("it has lost our Functions", 1.0)
    if _NOT_ALLOWED_INSIDE in str(error):
        return StoreDown(_NOT_ALLOWED, 5.0)
    why = "somebody has killed our Function in it" if _KILLED in str(error) else _REPLIES.get(str(error).split(" ", 1)[0])
    return None if why is None else StoreDown(why, 1.0)


def _no_connection(error: Failure) -> str | None:
    """What a person has to put right. The library says it in its words alone, and has what was wrong as the cause."""
    match error.__cause__ or error.__context__:
        case ssl.SSLCertVerificationError() as wrong:
            why = wrong.verify_message.rstrip(".")
            return f"its certificate is not believed: {why} (an authority of your own: `?ca=FILE` in its URL)"
        case ssl.SSLError(reason="TLSV13_ALERT_CERTIFICATE_REQUIRED"):
            return "it wants a certificate of its clients, which have none: it needs `tls-auth-clients no`, and a password"
        case socket.gaierror():
            return "nobody knows the host of its URL"
        case _:
            return None


def is_missing_function(error: Failure) -> bool:
    return isinstance(error, ResponseError) and _MISSING_FUNCTION in str(error)


def is_lost(error: Failure) -> bool:
    """The server is gone, or has become a replica: the connection is new the next time, perhaps to another server."""
    gone = isinstance(error, ConnectionError | TimeoutError | OSError | ReadOnlyError)
    if isinstance(error, ResponseError) and str(error).startswith("UNBLOCKED"):  # which a blocking read is told in its place
        return True
    return gone and not isinstance(error, BusyLoadingError | AuthenticationError)


def may_be_tried_again(error: Failure) -> bool:
    """At once, and with success. What was not answered in time has used up the time of its caller."""
    lost = is_lost(error) and not isinstance(error, TimeoutError)
    return lost or isinstance(error, AskError | TryAgainError) or is_missing_function(error)
