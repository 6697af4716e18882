"""The Functions as one library, named by a hash of its text: servers and nodes of two versions get along with each other."""

import hashlib
from importlib import resources
from typing import Final

import msgspec

from sessions.store import admission_limits as admission
from sessions.store import session_limits as limits
from sessions.store.amounts import NO_LIMIT
from sessions.store.keys import ADMISSION_KEYS, JOB_KEYS
from sessions.store.records import Priority

PARTS: Final = (
    ("session_head.lua", "session_ownership.lua", "session_content.lua"),
    ("listing.lua",),
    ("shelves.lua",),
    ("jobs.lua",),
    ("pool.lua", "tickets.lua", "nodes.lua", "waiting.lua", "seating.lua", "gate.lua", "looking.lua", "bills.lua"),
)
"""The files of one part see each other's locals; all see `register`, `now_us` and the constants."""

CONSTANTS: Final = {
    "OFFERED_TOKENS": limits.OFFERED_TOKENS,
    "JOURNAL_EVENTS": limits.JOURNAL_EVENTS,
    "JOURNAL_BYTES": limits.JOURNAL_BYTES,
    "JOURNAL_WINDOW_US": limits.JOURNAL_WINDOW_S * 1_000_000,
    "INPUT_BYTES": limits.INPUT_BYTES,
    "MOST_RESULTS": limits.MOST_RESULTS,
    "RESULT_BYTES": limits.RESULT_BYTES,
    "RESULT_WINDOW_US": limits.RESULT_WINDOW_S * 1_000_000,
    "RESUME": int(Priority.RESUME),
    "BATCH": int(Priority.BATCH),
    "NO_LIMIT": NO_LIMIT,
    "DUE_AT_ONCE": admission.DUE_AT_ONCE,
    "GRANTS_AT_ONCE": admission.GRANTS_AT_ONCE,
    "PLACES_READ": admission.PLACES_READ,
    "LANES_READ": admission.LANES_READ,
    "LENT_READ": admission.LENT_READ,
    "NEWS_KEPT": admission.NEWS_KEPT,
    "NEWS_KEPT_S": admission.NEWS_KEPT_S,
    "GIVEN_KEPT": admission.GIVEN_KEPT,
    "GIVEN_KEPT_US": admission.GIVEN_KEPT_S * 1_000_000,
    "ORPHANS_KEPT": admission.ORPHANS_KEPT,
    "ORPHAN_AGAIN_US": admission.ORPHAN_AGAIN_S * 1_000_000,
    "BILLED_KEPT_S": admission.BILLED_KEPT_S,
    "SMOOTHING": admission.SMOOTHING,
    "NO_NODE_RETRY_US": admission.NO_NODE_RETRY_S * 1_000_000,
    "QUOTA_RETRY_US": admission.QUOTA_RETRY_S * 1_000_000,
    "FULL_RETRY_US": admission.FULL_RETRY_S * 1_000_000,
    "LONGEST_RETRY_US": admission.LONGEST_RETRY_S * 1_000_000,
    **{f"KEY_{name}": f"'{key}'" for name, key in (ADMISSION_KEYS | JOB_KEYS).items()},
}

_REGISTER = """\
local function register(name, flags, callback)
  redis.register_function{{function_name = name .. '_{version}', callback = callback, flags = flags}}
end
"""


class Library(msgspec.Struct, frozen=True):
    version: str
    text: str
    """For FUNCTION LOAD."""

    def function(self, name: str) -> str:
        """What FCALL knows it by."""
        return f"{name}_{self.version}"


def library(clock: str | None = None) -> Library:
    """`clock` in place of clock.lua: Lua that defines `now_us`."""
    constants = "".join(f"local {name} = {value}\n" for name, value in CONSTANTS.items())
    parts = "".join(f"do\n{''.join(map(_text, files))}end\n" for files in PARTS)
    body = constants + (_text("clock.lua") if clock is None else clock) + parts
    version = hashlib.sha256(body.encode()).hexdigest()[:12]
    return Library(version, f"#!lua name=antiphon_{version}\n{_REGISTER.format(version=version)}{body}")


def _text(name: str) -> str:
    return resources.files("sessions.store").joinpath("functions", name).read_text()
