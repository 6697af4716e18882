"""A real coturn on loopback that shares a secret with the server, set up as deploy/README.md says.

async with running_coturn(folder, secret) as port:
    …                                            # turn:127.0.0.1:port, over UDP and TCP
"""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes.machine import ROOT
from fakes.ports import free_port

UNPACKED = ROOT / ".venv" / "coturn" / "usr"
RELAY = "127.0.0.2"
"""Where it relays: another address than the server's own, so that nothing gets through beside it."""
_READY = "(admin thread)"


def program() -> str:
    """The one that is installed, or the one that the set-up has unpacked."""
    found = shutil.which("turnserver", path=os.pathsep.join((os.environ["PATH"], str(UNPACKED / "bin"))))
    if found is None:
        pytest.skip("there is no coturn: the set-up found no Debian package of it")
    return found


@asynccontextmanager
async def running_coturn(folder: Path, secret: str) -> AsyncGenerator[int]:
    """Its log is `folder`/log."""
    port = free_port()
    config = folder / "turnserver.conf"
    config.write_text(
        f"listening-ip=127.0.0.1\nrelay-ip={RELAY}\nlistening-port={port}\nallow-loopback-peers\nno-cli\n"
        f"realm=voice.example.org\nuse-auth-secret\nstatic-auth-secret={secret}\nno-tls\nno-dtls\nrelay-threads=1\n"
        f"pidfile={folder}/pid\nuserdb={folder}/db\nlog-file=stdout\nsimple-log\nverbose\n"
    )
    environment = os.environ | {"LD_LIBRARY_PATH": str(UNPACKED / "lib" / "x86_64-linux-gnu")}
    process = await asyncio.create_subprocess_exec(
        *(program(), "-c", str(config)), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=environment
    )
    log = asyncio.create_task(_keep(process, folder / "log", listening := asyncio.Event()))
    try:
        async with asyncio.timeout(20):
            await listening.wait()
        yield port
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await log


async def _keep(process: asyncio.subprocess.Process, file: Path, listening: asyncio.Event) -> None:
    assert process.stdout is not None
    with file.open("wb") as kept:
        while line := await process.stdout.readline():
            kept.write(line)
            kept.flush()
            if _READY in line.decode(errors="replace"):
                listening.set()
