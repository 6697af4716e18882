"""How much one decision does, and how much is remembered, in every store: whatever there is, a decision costs about the same."""

from typing import Final

DUE_AT_ONCE: Final = 64
"""Ends that one call takes care of; the rest is for the next one."""
GRANTS_AT_ONCE: Final = 16
"""Places that become tickets in one call; the rest at the next one."""
PLACES_READ: Final = 256
"""Of each priority, when something has become free. Who waits behind them is not seen until some of them have left."""
LANES_READ: Final = 64
"""Of different tenants, nodes and kinds among them: who stands behind one that finds no room does not either."""
LENT_READ: Final = 16
"""Lent tickets of a resource, those lent longest first, that may be taken for one newcomer."""
NEWS_KEPT: Final = 1000
"""For each node. Overflow policy: the oldest go. A node that was away so long announces itself, and is told what it has lost."""
NEWS_KEPT_S: Final = 3600
GIVEN_KEPT: Final = 10_000
"""Tickets that ended by themselves: their nodes cannot have them back. Overflow policy: the oldest go."""
GIVEN_KEPT_S: Final = 3600
ORPHANS_KEPT: Final = 100_000
"""Overflow policy: the oldest go."""
ORPHAN_AGAIN_S: Final = 60
"""An orphan that was taken, and not released, is given to whoever asks then."""
BILLED_KEPT_S: Final = 86_400
"""What a session was billed, after the longest that it may live: a late word about it is billed once."""
SMOOTHING: Final = 8
"""Averages move by this part of each difference."""
NO_NODE_RETRY_S: Final = 1
QUOTA_RETRY_S: Final = 5
FULL_RETRY_S: Final = 5
"""When nobody has left yet; at most the next."""
LONGEST_RETRY_S: Final = 60
