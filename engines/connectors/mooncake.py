"""Between hosts by Mooncake: the producer copies into memory that others read. Extra; off unless a deployment asks for it."""

import asyncio
import itertools
import secrets
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from engines.connectors import PayloadLost, PayloadTooLarge
from engines.connectors.contents import Content, Inline, Key, Remote
from engines.connectors.faults import Faults
from engines.connectors.free_pages import FreePages
from engines.connectors.held import Held
from engines.connectors.inline import INLINE_LIMIT_BYTES
from engines.connectors.layout import outline, record_bytes
from engines.connectors.layout import payload as laid_out
from engines.connectors.mooncake_engine import MooncakeEngine
from engines.connectors.tcp import INLINE_BELOW_BYTES, limit_s
from engines.payloads import Payload

NAME = "mooncake"
PAGE_BYTES = 4096
HEADER = struct.Struct("<QQI")
"""The record's number, its size, and a checksum of both and its key."""
HEADER_BYTES = 64
READERS = 4
"""Threads that wait for transfers; the next ones wait for a thread."""


class MooncakeConnector:
    """`capacity_bytes` are taken now. A record is read with its header, and its header then once more: if that is still the same,
    nothing has been written over it meanwhile. Belongs to one event loop."""

    def __init__(self, engine: MooncakeEngine, capacity_bytes: int) -> None:
        """A consumer needs no capacity. Raises OSError."""
        self._engine = engine
        self._memory = np.zeros(max(1, -(-capacity_bytes // PAGE_BYTES)) * PAGE_BYTES, np.uint8)
        self._engine.register(self._memory)
        self._free = FreePages(self._memory.nbytes // PAGE_BYTES)
        self._numbers = itertools.count(secrets.randbits(48))
        self._held: Held[tuple[int, int]] = Held()
        """First page and how many. Bounded by the pages; policy: inline, then refuse."""
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix=NAME)
        self._faults = Faults("payloads by Mooncake")
        self._closed = False

    def put(self, key: Key, payload: Payload) -> Content:
        nbytes = payload.nbytes
        if nbytes > INLINE_BELOW_BYTES and not self._closed and (content := self._put(key, payload)) is not None:
            return content
        if nbytes > INLINE_LIMIT_BYTES:
            raise PayloadTooLarge(nbytes, max(INLINE_LIMIT_BYTES, self._memory.nbytes - HEADER_BYTES))
        return Inline(payload)

    async def get(self, content: Content) -> Payload:
        if isinstance(content, Inline):
            return content.payload
        key = content.outline.key
        if not isinstance(content, Remote) or content.by != NAME:
            raise PayloadLost(key, f"it does not travel by {NAME}")
        if self._closed:
            raise PayloadLost(key, "the connector is closed")
        try:
            record = np.empty(HEADER_BYTES + record_bytes(content.outline), np.uint8)
            async with asyncio.timeout(limit_s(record.nbytes)):
                is_there = await asyncio.get_running_loop().run_in_executor(self._threads, self._read, content, record)
        except (OSError, ValueError) as failed:
            self._faults.note(f"{content.address}: {str(failed) or 'it took too long'}")
            raise PayloadLost(key, self._faults.last) from failed
        if not is_there:
            raise PayloadLost(key, f"{content.address} does not have it any more")
        return laid_out(content.outline, record[HEADER_BYTES:].data)

    def cleanup(self, scope: str, before: int | None = None) -> int:
        forgotten = self._held.take(scope, before)
        for pages in forgotten:
            self._forget(*pages)
        return len(forgotten)

    def holds(self, scope: str) -> int:
        return self._held.count(scope)

    def health(self) -> str:
        return self._faults.sentence()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            for pages in self._held.take_all():
                self._forget(*pages)
            self._engine.unregister(self._memory)
            self._threads.shutdown(wait=False)

    def _put(self, key: Key, payload: Payload) -> Remote | None:
        """None: there is no room just now."""
        sketch = outline(key, payload)
        size = record_bytes(sketch)
        count = -(-(HEADER_BYTES + size) // PAGE_BYTES)
        if (page := self._free.take(count)) is None:
            return None
        record = self._memory[page * PAGE_BYTES :][: HEADER_BYTES + size]
        for array, place in zip(payload.arrays.values(), sketch.arrays.values(), strict=True):
            record[HEADER_BYTES + place.offset :][: place.nbytes] = np.frombuffer(array.data, np.uint8)
        number = next(self._numbers)
        record[: HEADER.size] = np.frombuffer(_header(number, size, key), np.uint8)
        for replaced in self._held.add(key, (page, count)):
            self._forget(*replaced)
        return Remote(sketch, NAME, f"{self._engine.address}/{record.ctypes.data}/{number}")

    def _forget(self, page: int, count: int) -> None:
        self._memory[page * PAGE_BYTES :][: HEADER.size] = 0
        self._free.give(page, count)

    def _read(self, content: Remote, record: NDArray[np.uint8]) -> bool:
        """In a thread; whether it was there all the time. Raises TransferFailed, and ValueError for an address that is none."""
        producer, at, number = content.address.rsplit("/", 2)
        expected = _header(int(number), record.nbytes - HEADER_BYTES, content.outline.key)
        self._engine.read(producer, int(at), record)
        again = np.empty(HEADER_BYTES, np.uint8)
        self._engine.read(producer, int(at), again)
        return record[: HEADER.size].tobytes() == again[: HEADER.size].tobytes() == expected


def _header(number: int, nbytes: int, key: Key) -> bytes:
    said = f"{number} {nbytes} {key.seq} {key.scope}"
    return HEADER.pack(number, nbytes, zlib.crc32(said.encode()))
