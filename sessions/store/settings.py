"""Where the store is: the deployment's `store:` section."""

from typing import Annotated

import msgspec

Positive = Annotated[float, msgspec.Meta(gt=0.0)]
HIDDEN = "(hidden)"


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Times in seconds."""

    url: str = "memory://"
    """`memory://` serves one process; several share `redis://`."""
    lease_s: Positive = 10.0
    """What a node holds is its own for so long after it was last heard of. Longer than a failover of the store takes."""
    settle_s: Annotated[float, msgspec.Meta(ge=0.0)] = 10.0
    """After the store has lost its data: the time in which nodes that live register what they hold, and newcomers wait."""

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
