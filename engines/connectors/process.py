"""All connectors of one process, by name."""

from collections.abc import Mapping

from engines.connectors import Connector, PayloadLost
from engines.connectors.contents import Content, Inline, Remote, Shared
from engines.connectors.inline import InlineConnector
from engines.connectors.shared_memory import SharedMemoryConnector
from engines.payloads import Payload

INLINE = "inline"
SHARED_MEMORY = "shared_memory"


class Connectors:
    """Belongs to one thread, and owns the connectors that it is given."""

    def __init__(self, capacity_bytes: int, others: Mapping[str, Connector] | None = None) -> None:
        """`capacity_bytes`: of this process's shared memory, all of it taken now; 0 for a process that only reads.
        `others`: those between hosts, by the name in Remote.by. Raises OSError."""
        self._shared_memory = SharedMemoryConnector(capacity_bytes)
        self._others = dict(others or {})
        self._by_name: dict[str, Connector] = {INLINE: InlineConnector(), SHARED_MEMORY: self._shared_memory, **self._others}

    def named(self, name: str) -> Connector:
        """Raises ValueError."""
        if name not in self._by_name:
            raise ValueError(f"connector: expected one of {', '.join(self._by_name)}, got {name!r}")
        return self._by_name[name]

    def read(self, content: Content) -> Payload | None:
        """None: it must be fetched, with `get`. Raises PayloadLost."""
        match content:
            case Inline():
                return content.payload
            case Shared():
                return self._shared_memory.read(content)
            case Remote():
                return None

    async def get(self, content: Content) -> Payload:
        """Raises PayloadLost."""
        if not isinstance(content, Remote):
            return self._shared_memory.read(content)
        if (connector := self._others.get(content.by)) is None:
            raise PayloadLost(content.outline.key, f"it travels by {content.by}, which this process has not")
        return await connector.get(content)

    def cleanup(self, scope: str, before: int | None = None) -> int:
        """As Connector.cleanup, over all of them."""
        return sum(connector.cleanup(scope, before) for connector in self._by_name.values())

    def holds(self, scope: str) -> int:
        return sum(connector.holds(scope) for connector in self._by_name.values())

    def health(self) -> str:
        """One sentence for each that does not work, empty when all do."""
        return "; ".join(filter(None, (connector.health() for connector in self._by_name.values())))

    def close(self) -> None:
        """Idempotent."""
        for connector in self._by_name.values():
            connector.close()
