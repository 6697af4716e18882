"""Errors that every call may meet, as one line in a while each."""

import logging
import re
import time
from collections.abc import Callable

import msgspec

PERIOD_S = 10.0
MOST_CAUSES = 64
"""At a time; those beyond them are taken for one."""
_NUMBERED = re.compile(r"\b\w*\d\w*")
"""Ids, places and amounts: the same trouble with others of them is no other trouble."""
_OTHERS = ""


class _Cause(msgspec.Struct):
    logged_at_s: float
    left_out: int = 0


class SparseLog:
    """Of each cause one line in PERIOD_S; it says how many there were since the one before. `clock` is monotonic, in seconds."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._causes: dict[str, _Cause] = {}

    def error(self, text: str) -> None:
        now_s, name = self._clock(), self._name(text)
        known = self._causes.get(name)
        if known is not None and now_s - known.logged_at_s < PERIOD_S:
            known.left_out += 1
            return
        more = f" (and {known.left_out} more of this kind since the last such line)" if known and known.left_out else ""
        self._causes[name] = _Cause(now_s)
        self._log.error("%s%s", text, more)

    def _name(self, text: str) -> str:
        name = _NUMBERED.sub("#", text)
        if name in self._causes or len(self._causes) < MOST_CAUSES:
            return name
        now_s = self._clock()
        self._causes = {name: cause for name, cause in self._causes.items() if now_s - cause.logged_at_s < PERIOD_S}
        return name if len(self._causes) < MOST_CAUSES else _OTHERS
