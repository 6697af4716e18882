"""The server under test, started the way a user starts it."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

READY_TIMEOUT_S = 120
STOP_TIMEOUT_S = 15


class Server(msgspec.Struct, frozen=True):
    url: str
    pid: int
    ready_s: float

    def rss_mb(self) -> float:
        """Resident memory of the gateway process."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"process {self.pid} has no VmRSS")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def running_server(*arguments: str) -> AsyncIterator[Server]:
    """`antiphon serve` on a free port with the default deployment; ready when /readyz says so, stopped by SIGTERM."""
    port = free_port()
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "realtime.cli", "serve", "--port", str(port), *arguments, stdout=sys.stderr, env=dict(os.environ)
    )
    url = f"http://127.0.0.1:{port}"
    try:
        await _until_ready(url, process)
        yield Server(url, process.pid, time.monotonic() - started)
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _until_ready(url: str, process: asyncio.subprocess.Process) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    async with aiohttp.ClientSession() as http:
        while time.monotonic() < deadline:
            if process.returncode is not None:
                raise RuntimeError(f"the server ended with exit code {process.returncode}")
            try:
                async with http.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)
    raise RuntimeError(f"the server was not ready after {READY_TIMEOUT_S} s")
