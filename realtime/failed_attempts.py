"""How often one address may guess a key that people have chosen."""

import ipaddress
from collections import OrderedDict

import msgspec

AT_ONCE = 20
"""Wrong keys, before an address has to wait."""
PER_S = 1.0
"""So many of them are forgotten."""
MOST_ADDRESSES = 10_000
"""Overflow policy `latest`: the one that failed longest ago is forgotten."""
IPV6_BITS = 64
"""What one household or host has for itself."""


class _Failures(msgspec.Struct):
    level: float
    at_s: float


class FailedAttempts:
    """Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def wait_s(self, address: str, now_s: float) -> float:
        """Until it may try again; 0: it may now."""
        return max(0.0, (self._level(_group(address), now_s) - AT_ONCE + 1) / PER_S)

    def failed(self, address: str, now_s: float) -> None:
        group = _group(address)
        self._failures[group] = _Failures(self._level(group, now_s) + 1, now_s)
        self._failures.move_to_end(group)
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def _level(self, group: str, now_s: float) -> float:
        known = self._failures.get(group)
        return 0.0 if known is None else max(0.0, known.level - (now_s - known.at_s) * PER_S)


def _group(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    return address if found.version == 4 else str(ipaddress.ip_network((int(found) >> IPV6_BITS << IPV6_BITS, IPV6_BITS)))
