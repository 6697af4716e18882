"""`antiphon serve` as a process, with worker processes that run a fake model."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import aiohttp

DEPLOYMENT = """
pipeline: fakes.pipelines:ECHOES
store: {{url: "{store}", settle_s: 0}}
workers:
  one: {{stages: [first, second]}}
stages:
  first: {{model: "fakes.echo_model:Echo", directory: "{folder}"}}
  second: {{model: "fakes.echo_model:Echo", directory: "{folder}"}}
"""


class Served:
    """`log` is what it says on stderr."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log
        self.url = ""
        self.said: list[str] = []

    async def until(self, pattern: str) -> re.Match[str]:
        """The next line that it prints with this in it."""
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            while line := (await self.process.stdout.readline()).decode():
                self.said.append(line)
                if found := re.search(pattern, line):
                    return found
        raise AssertionError(f"it ended without {pattern!r}, having said {self.said}")

    async def logs(self, words: str) -> None:
        """Until this stands in its log."""
        async with asyncio.timeout(30):
            while words not in self.log.read_text():  # noqa: ASYNC110 (a file rings no bell)
                await asyncio.sleep(0.01)

    async def stop(self, *signals: signal.Signals) -> tuple[int, float]:
        """Exit code, and seconds from the first signal to the end."""
        started = time.monotonic()
        for number in signals:
            self.process.send_signal(number)
        return await self.process.wait(), time.monotonic() - started

    async def ready_status(self) -> int:
        async with aiohttp.ClientSession() as http, http.get(f"{self.url}/readyz") as answer:
            return answer.status


Serve: TypeAlias = Callable[..., AbstractAsyncContextManager[Served]]
"""`async with serve(*options)`."""


def serving_echoes(folder: Path, store: str = "memory://") -> Serve:
    """Servers whose deployment and log lie in `folder`."""
    file = folder / "echoes.yaml"
    file.write_text(DEPLOYMENT.format(folder=folder, store=store))
    return serving(file)


def serving(file: Path, ahead_s: float = 0.0) -> Serve:
    """Servers of this deployment. Their log lies beside it. So much is their wall clock ahead."""
    wrong = {"PYTHONPATH": "tests/fakes/clock_ahead:tests", "CLOCK_AHEAD_S": str(ahead_s)}
    environment = os.environ | (wrong if ahead_s else {"PYTHONPATH": "tests"})

    @asynccontextmanager
    async def run(*options: str) -> AsyncGenerator[Served]:
        command = (sys.executable, "-m", "realtime.cli", "serve", "--port", "0", "--deployment", str(file), *options)
        log = file.parent / "log"
        with log.open("w") as said:
            process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=said, env=environment)
        served = Served(process, log)
        try:
            served.url = (await served.until(r"listening on (\S+)"))[1]
            yield served
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    return run
