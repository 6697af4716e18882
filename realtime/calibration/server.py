"""The server that is calibrated: the deployment's own graph, in processes of its own, open to this machine alone."""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from realtime.calibration.probe import ProbeFailed
from realtime.deployment import Deployment, render
from realtime.settings import API_KEY_VARIABLE, ServerSettings
from sessions.admission.settings import AdmissionSettings
from sessions.store.settings import StoreSettings

STOP_S = 15.0
ASK_AGAIN_S = 0.25


def roomy(deployment: Deployment, sessions: int, keys_file: Path) -> Deployment:
    """With room for so many, no keys, and nobody else's store."""
    server = ServerSettings(
        port=0, log_level="warning", realtime_priority=deployment.server.realtime_priority, keys_file=str(keys_file)
    )
    return msgspec.structs.replace(
        deployment,
        server=server,
        limits=msgspec.structs.replace(deployment.limits, maximum_sessions=sessions),
        admission=AdmissionSettings(state_mb=1 << 20),
        store=StoreSettings(),
        tenants={},
        seats={},
    )


@asynccontextmanager
async def calibrated_server(deployment: Deployment, sessions: int, ready_s: float) -> AsyncGenerator[str]:
    """Its URL, when all models are loaded. Raises ProbeFailed."""
    with tempfile.TemporaryDirectory(prefix="antiphon-calibrate-") as folder:
        file = Path(folder) / "deployment.yaml"
        file.write_text(render(roomy(deployment, sessions, Path(folder) / "keys")))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "realtime.cli", "serve", "--deployment", str(file)),
            stdout=asyncio.subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name != API_KEY_VARIABLE},
        )
        said = asyncio.create_task(_listening(process))
        reading = asyncio.create_task(_read_on(process, said))
        try:
            async with asyncio.timeout(ready_s):
                url = await asyncio.shield(said)
                await _until_ready(url, process)
            yield url
        except TimeoutError:
            raise ProbeFailed(f"the server was not ready within {ready_s:g} s") from None
        finally:
            await _stop(process)
            await asyncio.wait([reading])


async def _listening(process: asyncio.subprocess.Process) -> str:
    """Where it listens, as it says itself. Raises ProbeFailed when it ends before."""
    lines = _stdout(process)
    while line := await lines.readline():
        if found := re.search(r"listening on (\S+)", line.decode()):
            return found[1]
    raise ProbeFailed("the server has ended before it was ready; what it said stands above")


async def _read_on(process: asyncio.subprocess.Process, said: asyncio.Task[str]) -> None:
    """Or it would wait for its reader some day."""
    await asyncio.wait([said])
    while await _stdout(process).readline():
        pass


async def _until_ready(url: str, process: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as http:
        while process.returncode is None:
            async with http.get(f"{url}/readyz") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(ASK_AGAIN_S)  # another process has no bell
    raise ProbeFailed("the server has ended while it was loading; what it said stands above")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _stdout(process: asyncio.subprocess.Process) -> asyncio.StreamReader:
    if process.stdout is None:
        raise RuntimeError("it was started without a pipe")
    return process.stdout
