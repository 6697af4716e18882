"""Between processes of one host: one copy into the producer's arena, views without a copy out of it.

Whoever reads marks the record while any of its views lives, so its bytes are used again only when the producer has forgotten it
and nobody reads it any more. What there is no room for just now travels inline: a put waits for nobody.
"""

from engines.connectors import PayloadLost, PayloadTooLarge
from engines.connectors.arena import ArenaGone
from engines.connectors.arena_reader import ArenaReader, TooManyReaders
from engines.connectors.arena_writer import ArenaWriter
from engines.connectors.contents import Content, Inline, Key, Remote, Shared
from engines.connectors.entries import Corrupt, Forgotten
from engines.connectors.faults import Faults
from engines.connectors.inline import INLINE_LIMIT_BYTES
from engines.connectors.layout import payload as laid_out
from engines.payloads import Payload

INLINE_BELOW_BYTES = 8 << 10
"""Measured over a control connection: at 32 KB both ways cost the same, 40 µs (1 KB inline: 31), and at 16 KB when there is a
gateway between. Half of that, because a gateway has better things to do than to copy."""


class SharedMemoryConnector:
    """Belongs to one thread; views may be dropped in any."""

    def __init__(self, capacity_bytes: int) -> None:
        """What this process has put may take `capacity_bytes`, in pages of 4 KiB. Raises OSError."""
        self._capacity_bytes = capacity_bytes
        self._writer = ArenaWriter(capacity_bytes)
        self._readers: dict[str, ArenaReader] = {}
        """By arena. Bounded by the processes of this host: those that are gone are let go."""
        self._faults = Faults("shared memory")
        self._closed = False

    def put(self, key: Key, payload: Payload) -> Content:
        nbytes = payload.nbytes
        if nbytes > INLINE_BELOW_BYTES and not self._closed and (content := self._writer.put(key, payload)) is not None:
            return content
        if nbytes > INLINE_LIMIT_BYTES:
            raise PayloadTooLarge(nbytes, max(INLINE_LIMIT_BYTES, self._capacity_bytes))
        return Inline(payload)

    async def get(self, content: Content) -> Payload:
        return self.read(content)

    def read(self, content: Content) -> Payload:
        """`get` at once. Raises PayloadLost."""
        if isinstance(content, Inline):
            return content.payload
        key = content.outline.key
        if isinstance(content, Remote):
            raise PayloadLost(key, "it does not travel through shared memory")
        if self._closed:
            raise PayloadLost(key, "the connector is closed")
        try:
            return laid_out(content.outline, self._reader(content).view(content))
        except Forgotten as gone:
            raise PayloadLost(key, str(gone)) from gone
        except (ArenaGone, Corrupt, TooManyReaders) as fault:
            self._faults.note(f"payload {key.seq} of {key.scope}: {fault}")
            raise PayloadLost(key, str(fault)) from fault

    def cleanup(self, scope: str, before: int | None = None) -> int:
        return self._writer.cleanup(scope, before)

    def holds(self, scope: str) -> int:
        return self._writer.holds(scope)

    def health(self) -> str:
        """Looks also who has died, and lets go of what was theirs."""
        self._let_go_of_the_dead()
        return self._faults.sentence()

    def close(self) -> None:
        self._closed = True
        self._writer.close()
        for name in list(self._readers):
            self._readers.pop(name).close()

    def _reader(self, content: Shared) -> ArenaReader:
        """What a process has put can be read after its death, while its arena is open here: nobody writes there any more."""
        if (reader := self._readers.get(content.arena)) is not None:
            return reader
        self._let_go_of_the_dead()
        reader = self._readers[content.arena] = ArenaReader(content.arena, content.pid, content.fd)
        return reader

    def _let_go_of_the_dead(self) -> None:
        """Their memory ends with the last view into it."""
        for name, reader in list(self._readers.items()):
            if not reader.arena.is_alive():
                self._faults.note(f"process {reader.pid}, whose payloads were read here, is gone")
                self._readers.pop(name).close()
