"""The server under test, started the way a user starts it."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from fakes.ports import free_port

READY_TIMEOUT_S = 120
STOP_TIMEOUT_S = 15


class Server(msgspec.Struct, frozen=True):
    url: str
    pid: int
    ready_s: float

    def rss_mb(self) -> float:
        """Resident memory of the gateway process, its own: what it reads of the workers' shared memory is counted there."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        sizes_kb = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if "kB" in rest}
        return (sizes_kb["VmRSS"] - sizes_kb["RssShmem"]) / 1024


@asynccontextmanager
async def running_server(*arguments: str, python_path: str = "") -> AsyncGenerator[Server, None]:
    """`antiphon serve` on a free port with the default deployment; ready when /readyz says so, stopped by SIGTERM. Its processes
    find modules in `python_path`, too."""
    port = free_port()
    started = time.monotonic()
    command = (sys.executable, "-m", "realtime.cli", "serve", "--port", str(port), *arguments)
    environment = os.environ | ({"PYTHONPATH": python_path} if python_path else {})
    process = await asyncio.create_subprocess_exec(*command, stdout=sys.stderr, env=environment)
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


async def until(holds: Callable[[], Awaitable[bool]], timeout_s: float = 30) -> None:
    """Ask another process again and again until it says yes: it has no event that we could wait for."""
    deadline = time.monotonic() + timeout_s
    while not await holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"did not come true in {timeout_s} s: {holds}")
        await asyncio.sleep(0.1)


async def is_ready(url: str) -> bool:
    """Whether /readyz answers 200."""
    async with aiohttp.ClientSession() as http:
        try:
            async with http.get(f"{url}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


async def _until_ready(url: str, process: asyncio.subprocess.Process) -> None:
    async def ready_or_dead() -> bool:
        if process.returncode is not None:
            raise RuntimeError(f"the server ended with exit code {process.returncode}")
        return await is_ready(url)

    await until(ready_or_dead, READY_TIMEOUT_S)
