"""How it is told to a client that it cannot be served now: by HTTP, or by an error and a close code."""

import math

from aiohttp import WSCloseCode

from realtime.errors import INVALID, RATE_LIMIT, SERVER, QueuePlace, Refusal
from sessions.admission.admission import HasToWait, NotAdmitted
from sessions.store.interface import StoreDown
from sessions.store.records import Refusal as Reason

_CASES: dict[Reason, tuple[int, str, str]] = {
    Reason.QUOTA: (429, RATE_LIMIT, "session_quota_reached"),
    Reason.FULL: (503, SERVER, "session_limit_reached"),
    Reason.WAITED: (503, SERVER, "session_limit_reached"),
    Reason.TOO_BIG: (413, INVALID, "too_big"),
    Reason.DRAINING: (503, SERVER, "server_draining"),
    Reason.SETTLING: (503, SERVER, "not_ready"),
}
"""Status, family, code."""
_FOR_GOOD = frozenset((Reason.QUOTA, Reason.TOO_BIG))
"""Nothing that a client gains by trying again at once, as SDKs do after a close with 1013."""


def turned_away(failure: NotAdmitted | StoreDown) -> Refusal:
    match failure:
        case NotAdmitted(reason=reason):
            status, family, code = _CASES[reason]
            field = failure.resource or None if reason is Reason.TOO_BIG else None
            after_s = None if reason is Reason.TOO_BIG else whole_seconds(failure.retry_after_s)
            return Refusal(str(failure), status=status, type=family, code=code, field=field, retry_after_s=after_s)
        case StoreDown():
            after_s = whole_seconds(failure.retry_after_s)
            message = "the server cannot take anybody new for a moment; try again"
            return Refusal(message, status=503, type=SERVER, code="store_down", retry_after_s=after_s)


def close_code(failure: NotAdmitted | StoreDown) -> WSCloseCode:
    for_good = isinstance(failure, NotAdmitted) and failure.reason in _FOR_GOOD
    return WSCloseCode.POLICY_VIOLATION if for_good else WSCloseCode.TRY_AGAIN_LATER


def told_to_wait(place: HasToWait, entry: str) -> Refusal:
    """`entry` is the name under which the client may ask again."""
    queue = QueuePlace(id=entry, position=place.waiting.position, estimate_s=place.waiting.estimate_s)
    after_s = whole_seconds(place.retry_after_s)
    return Refusal(str(place), status=503, type=SERVER, code="session_queued", retry_after_s=after_s, queue=queue)


def whole_seconds(seconds: float) -> int:
    """As Retry-After has it."""
    return max(1, math.ceil(seconds))
