"""Which connector carries what a stage emits: that depends on where it and its readers run."""

from collections.abc import Iterable

from engines.connectors.process import INLINE, SHARED_MEMORY
from engines.site import NOWHERE, Site


def connector(producer: Site, readers: Iterable[Site]) -> str:
    """The name of the connector. Inline where nothing better reaches every reader; a payload that is too large for that fails."""
    if producer != NOWHERE and all(reader.host == producer.host for reader in readers):
        return SHARED_MEMORY
    return producer.fetched_by or INLINE
