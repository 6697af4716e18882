"""Whether a server throws away what is kept in it when its memory is used up, as those do that are set up as a cache."""

import logging
import re

from redis.exceptions import ResponseError

from sessions.store.replies import understood
from sessions.store.wire import Wire

log = logging.getLogger(__name__)

_LIMIT = re.compile(rb"^maxmemory:([1-9][0-9]*)", re.MULTILINE)
_POLICY = re.compile(rb"^maxmemory_policy:(\S+)", re.MULTILINE)


async def warn_of_eviction(wire: Wire) -> None:
    """Raises what Redis raises."""
    try:
        told = understood(await wire.ask("INFO", "memory"), bytes)
    except ResponseError:  # its user may not look
        return
    policy = _POLICY.search(told)
    if policy is not None and policy[1] != b"noeviction" and _LIMIT.search(told):
        log.warning(
            "the session store may throw away keys of sessions, seats and API keys without a word when its memory is used up "
            "(maxmemory-policy %s): set it to noeviction, or use a Redis that is no cache",
            policy[1].decode(),
        )
