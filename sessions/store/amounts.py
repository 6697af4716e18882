"""Amounts and times as the store counts them: in whole numbers, so that what was taken and given back leaves nothing behind."""

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

from sessions.store.records import Resources

Amounts: TypeAlias = tuple[tuple[str, int], ...]
"""Sorted by name; in thousandths."""

PARTS: Final = 1000
LARGEST: Final = 9e12
"""As thousandths it is still exact in a double: 9 TB, counted in bytes."""
NO_LIMIT: Final = 1 << 53
"""More than there can be of anything."""
LONGEST_S: Final = 1e9
SCOPES: Final = ("host", "node", "tenant")


def counted(resources: Resources, field: str) -> Amounts:
    """Raises ValueError for what cannot be counted. An amount that is not zero is one part at least."""
    for name, amount in resources.items():
        if name.partition(":")[0] not in SCOPES:
            raise ValueError(f"{field}: expected a name that begins with node:, host: or tenant:, got {name[:80]!r}")
        if not 0 <= amount <= LARGEST:
            raise ValueError(f"{field}: expected 0 to {LARGEST:g} of {name!r}, got {amount}")
    return tuple((name, _parts(resources[name])) for name in sorted(resources))


def cost_of(resources: Resources) -> Amounts:
    """As `counted`; what costs nothing is left out."""
    return tuple((name, parts) for name, parts in counted(resources, "cost") if parts)


def told(amounts: Amounts) -> dict[str, float]:
    return {name: parts / PARTS for name, parts in amounts}


def used_up(usage: Mapping[str, float]) -> Amounts:
    """Raises ValueError."""
    for name, amount in usage.items():
        if not 0 <= amount <= LARGEST:
            raise ValueError(f"usage: expected 0 to {LARGEST:g} of {name!r}, got {amount}")
    return tuple((name, round(usage[name] * PARTS)) for name in sorted(usage))


def microseconds(seconds: float, field: str) -> int:
    """Raises ValueError. More than 30 years are 30 years."""
    if math.isnan(seconds) or seconds < 0:
        raise ValueError(f"{field}: expected 0 s or more, got {seconds}")
    return round(min(seconds, LONGEST_S) * 1e6)


def share_size(weight: float) -> int:
    """What one session takes of its tenant's share, in virtual time: the less, the greater the weight. Raises ValueError."""
    if not 0 < weight <= 1e6:
        raise ValueError(f"weight: expected more than 0, at most 1,000,000, got {weight}")
    return min(max(round(1e6 / weight), 1), 1_000_000_000)


def _parts(amount: float) -> int:
    return max(round(amount * PARTS), 1) if amount else 0
