"""The server's last seconds: nothing new is taken, and whoever is connected hears of it."""

import asyncio


class Drain:
    def __init__(self) -> None:
        self._begun = asyncio.Event()

    def begin(self) -> None:
        self._begun.set()

    @property
    def begun(self) -> bool:
        return self._begun.is_set()

    async def wait(self) -> None:
        await self._begun.wait()
