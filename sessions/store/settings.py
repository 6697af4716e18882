"""Where the store is: the deployment's `store:` section."""

from typing import Annotated

import msgspec

Positive = Annotated[float, msgspec.Meta(gt=0.0)]
HIDDEN = "(hidden)"
RENEWALS_IN_A_LEASE = 3
"""Whoever has one says so often that it holds; who was forgotten meanwhile says then what it holds."""


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Times in seconds. A shared store whose `settle_s` is too short for its `lease_s` is a ValueError. `memory://` settles at
    once, whatever it says; `settle_s: 0` is for tests, and for whoever accepts more sessions than seats after a loss of data."""

    url: str = "memory://"
    """`memory://` serves one process; several share `redis://`."""
    lease_s: Positive = 10.0
    """What a node holds is its own for so long after it was last heard of. Longer than a failover of the store takes."""
    settle_s: Annotated[float, msgspec.Meta(ge=0.0)] = 10.0
    """After the store has lost its data: the time in which nodes that live register what they hold, and newcomers wait.
    Longer than a third of `lease_s`, as they hear of the loss when they renew."""

    def __post_init__(self) -> None:
        shortest_s = self.lease_s / RENEWALS_IN_A_LEASE
        if self.is_shared and 0 < self.settle_s <= shortest_s:
            raise ValueError(
                f"settle_s: expected more than {shortest_s:g}, a third of store.lease_s ({self.lease_s:g}), as nodes may take "
                f"so long to register again what they hold, got {self.settle_s:g}: set a longer settle_s or a shorter lease_s"
            )

    @property
    def is_shared(self) -> bool:
        return self.url.partition("://")[0] != "memory"

    def without_password(self) -> "StoreSettings":
        """Whatever it has in it, also what means something else in a URL: all up to the last @ may be a part of it."""
        scheme, separator, rest = self.url.partition("://")
        credentials, at, places = rest.rpartition("@")
        user, colon, _ = credentials.partition(":")
        if not colon:
            return self
        return msgspec.structs.replace(self, url=f"{scheme}{separator}{user}:{HIDDEN}{at}{places}")
