"""The server's last seconds: nothing new is taken, and whoever is connected hears of it."""

import asyncio
import contextlib
from collections.abc import Generator


class Drain:
    """`begun`: nothing new is taken, sessions go. `stopping`: and the process ends after them; there is no way back from that."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()
        self._stopping = asyncio.Event()
        self._working = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self) -> None:
        self._begun.set()
        self._open.clear()

    def undo(self) -> None:
        """The server takes sessions again, unless it is stopping."""
        if not self._stopping.is_set():
            self._begun.clear()
            self._open.set()

    def stop(self) -> None:
        self.begin()
        self._stopping.set()

    @property
    def begun(self) -> bool:
        return self._begun.is_set()

    async def wait(self) -> None:
        """Until it has begun."""
        await self._begun.wait()

    async def undone(self) -> None:
        await self._open.wait()

    async def until_stopping(self) -> None:
        await self._stopping.wait()

    @contextlib.contextmanager
    def working(self) -> Generator[None]:
        """Somebody is being served as long as the block runs."""
        self._working += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._working -= 1
            if not self._working:
                self._idle.set()

    async def until_idle(self) -> None:
        """Nobody is being served."""
        await self._idle.wait()
