"""The Functions as one library, named by a hash of its text: servers and nodes of two versions get along with each other."""

import hashlib
from importlib import resources
from typing import Final

import msgspec

from sessions.store import session_limits as limits

PARTS: Final = (
    ("session_head.lua", "session_ownership.lua", "session_content.lua"),
    ("listing.lua",),
    ("shelves.lua",),
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
