"""Another process with connectors, which does as it is told line by line, and can be killed.

async with payload_process() as other:
    content = await other.put(Key("scope", 0), fill=7, nbytes=100_000)
    assert await other.hold(content) == "7"
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import msgspec
import numpy as np

from engines.connectors import PayloadLost
from engines.connectors.contents import Content, Key
from engines.connectors.process import SHARED_MEMORY, Connectors
from engines.payloads import Array, Payload

ARENA_BYTES = 4 << 20


class Put(msgspec.Struct, tag=True):
    key: Key
    fill: int
    nbytes: int


class Hold(msgspec.Struct, tag=True):
    """Get, and keep it. Answered by what it is filled with, or by why it is lost."""

    content: Content


class Drop(msgspec.Struct, tag=True):
    """All that it holds."""


class OtherProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def put(self, key: Key, *, fill: int, nbytes: int) -> Content:
        return msgspec.json.decode(await self._ask(Put(key, fill, nbytes)), type=Content)

    async def hold(self, content: Content) -> str:
        return msgspec.json.decode(await self._ask(Hold(content)), type=str)

    async def drop(self) -> None:
        await self._ask(Drop())

    def begin_to_hold(self, contents: Sequence[Content]) -> None:
        """One after the other, and drop them; what comes of it is answered by `held`, in order."""
        self._tell(*map(Hold, contents), Drop())

    async def held(self, count: int) -> list[str]:
        answers = [msgspec.json.decode(await self._answer(), type=str) for _ in range(count + 1)]
        return answers[:-1]

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()

    async def _ask(self, command: Put | Hold | Drop) -> bytes:
        self._tell(command)
        return await self._answer()

    def _tell(self, *commands: Put | Hold | Drop) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(msgspec.json.encode(command) + b"\n" for command in commands))

    async def _answer(self) -> bytes:
        assert self._process.stdout is not None
        return await self._process.stdout.readline()


@asynccontextmanager
async def payload_process() -> AsyncGenerator[OtherProcess, None]:
    pipe = asyncio.subprocess.PIPE
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", __name__, stdin=pipe, stdout=pipe, env=environment)
    try:
        yield OtherProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def serve() -> None:
    connectors = Connectors(ARENA_BYTES)
    held: list[Payload] = []
    for line in sys.stdin:
        answer = obey(msgspec.json.decode(line, type=Put | Hold | Drop), connectors, held)
        sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
        sys.stdout.flush()


def obey(command: Put | Hold | Drop, connectors: Connectors, held: list[Payload]) -> Content | str:
    match command:
        case Put():
            values = np.full(command.nbytes, command.fill, np.uint8)
            return connectors.named(SHARED_MEMORY).put(command.key, Payload(arrays={"bytes": Array.of(values)}))
        case Drop():
            held.clear()
            return ""
        case Hold():
            try:
                payload = connectors.read(command.content)
            except PayloadLost as lost:
                return str(lost)
            assert payload is not None
            held.append(payload)
            return " ".join(map(str, np.unique(payload.arrays["bytes"].numpy())))


if __name__ == "__main__":
    serve()
