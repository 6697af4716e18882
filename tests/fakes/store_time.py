"""The store's time under the test's control: it stands still until the test lets some pass."""

START_US = 1_800_000_000_000_000

CLOCK_LUA = f"""\
local shown_us = {START_US}
local function now_us() return shown_us end
register('test_clock', {{'no-writes'}}, function(_, arguments)
  shown_us = tonumber(arguments[1])
end)
"""
"""In place of clock.lua. The call `test_clock` sets it, to µs."""


class StoreTime:
    """Of a store in memory: `MemoryStore(time.now_us)`. That of Redis is told `us` after each step."""

    def __init__(self) -> None:
        self.us = START_US

    def now_us(self) -> int:
        return self.us

    def step(self, seconds: float) -> None:
        self.us += round(seconds * 1e6)
