"""Whose turn it is."""

import asyncio

from sessions.jobs.line import Line


class Turns:
    def __init__(self, at_once: int) -> None:
        self.line = Line(at_once)
        self.taken: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, *names: str) -> None:
        """Tenants are called by the first letter."""
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._take(name))
        await asyncio.sleep(0)

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.tasks[name]
        await asyncio.sleep(0)

    async def leave(self, name: str) -> None:
        self.tasks[name].cancel()
        await asyncio.wait((self.tasks[name],))
        await asyncio.sleep(0)

    async def _take(self, name: str) -> None:
        async with self.line.turn(name[0]):
            self.taken.append(name)
            await self.ends[name].wait()


async def test_tenants_take_turns() -> None:
    turns = Turns(at_once=2)
    await turns.ask("a1", "a2", "a3", "b1", "c1")
    assert turns.taken == ["a1", "a2"]
    await turns.end("a1")
    assert turns.taken[2:] == ["b1"], "who has none goes before who has one"
    await turns.end("a2")
    assert turns.taken[3:] == ["a3"], "the first of equals"
    await turns.end("a3")
    await turns.end("b1")
    assert turns.taken[4:] == ["c1"]
    await turns.end("c1")


async def test_who_leaves_gives_place() -> None:
    turns = Turns(at_once=1)
    await turns.ask("a1", "b1", "c1")
    await turns.leave("b1")
    await turns.leave("a1")
    assert turns.taken == ["a1", "c1"]
    await turns.end("c1")
    await turns.ask("d1")
    assert turns.taken[-1] == "d1"
    await turns.end("d1")


async def test_who_is_called_and_leaves_before_coming_gives_place() -> None:
    turns = Turns(at_once=1)
    await turns.ask("a1", "b1", "c1")
    turns.ends["a1"].set()
    turns.tasks["b1"].cancel()
    await asyncio.wait((turns.tasks["a1"], turns.tasks["b1"]))
    await asyncio.sleep(0)
    assert turns.taken == ["a1", "c1"]
    await turns.end("c1")
