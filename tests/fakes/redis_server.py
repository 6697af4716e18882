"""Real Redis servers on loopback, as many as a test wants; each in a folder of its own, without persistence unless asked for.

async with running_redis(folder) as server: ... server.url
"""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fakes.machine import ROOT
from fakes.ports import free_port

UNPACKED = ROOT / ".venv" / "redis" / "usr"


def program() -> str:
    """The one that is installed, or the one that the set-up has unpacked."""
    found = shutil.which("redis-server", path=os.pathsep.join((os.environ["PATH"], str(UNPACKED / "bin"))))
    if found is None:
        raise FileNotFoundError("there is no redis-server: tests/run sets it up")
    return found


class RedisServer:
    """`options` as on its command line: ("--appendonly", "yes")."""

    ready = b"Ready to accept connections"
    """It logs this when it has started."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        self.folder = folder
        self.port = free_port() if port is None else port
        self._options = options
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self, *options: str) -> None:
        """Also once more, on the same port and with the files that it has left. Returns when it takes connections."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = await asyncio.create_subprocess_exec(
            *(program(), *self._stated(), *self._options, *options),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=os.environ | {"LD_LIBRARY_PATH": str(UNPACKED / "lib" / "x86_64-linux-gnu")},
        )
        ready = asyncio.Event()
        self._reading = asyncio.create_task(self._read(self._process, ready))
        async with asyncio.timeout(20):
            await ready.wait()
        if self._process.returncode is not None:
            raise AssertionError((self.folder / "log").read_text())

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP and SIGCONT, for one that hangs."""
        assert self._process is not None
        self._process.send_signal(number)

    async def kill(self) -> None:
        """As `kill -9` does: nothing is written any more."""
        if self._process is not None and self._reading is not None:
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()
            await self._reading

    def _stated(self) -> tuple[str, ...]:
        stated = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder))
        return (*stated, "--save", "", "--daemonize", "no")

    async def _read(self, process: asyncio.subprocess.Process, ready: asyncio.Event) -> None:
        assert process.stdout is not None
        with (self.folder / "log").open("wb") as kept:
            while line := await process.stdout.readline():
                kept.write(line)
                kept.flush()
                if self.ready in line:
                    ready.set()
        await process.wait()
        ready.set()


@asynccontextmanager
async def running_redis(folder: Path, *options: str) -> AsyncGenerator[RedisServer]:
    server = RedisServer(folder, *options)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()
