"""A real nginx with the example of deploy/proxy, on ports of this machine."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fakes.certificates import Pair
from fakes.machine import ROOT
from fakes.ports import free_port

EXAMPLE = ROOT / "deploy" / "proxy" / "nginx.conf"
NAME = "voice.example.org"
CERTIFICATE = f"/etc/letsencrypt/live/{NAME}/fullchain.pem"
KEY = f"/etc/letsencrypt/live/{NAME}/privkey.pem"
AROUND = """
daemon off;
pid {folder}/pid;
error_log stderr notice;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/antiphon.conf;
}}
"""
"""What stands around the example: no file outside `folder`, no process in the background."""


def program() -> str:
    """The one that is installed, or the one that the set-up has unpacked."""
    unpacked = ROOT / ".venv" / "nginx" / "usr" / "sbin"
    found = shutil.which("nginx", path=os.pathsep.join((os.environ["PATH"], "/usr/sbin", str(unpacked))))
    if found is None:
        raise FileNotFoundError("there is no nginx: tests/run sets it up")
    return found


@asynccontextmanager
async def running_nginx(folder: Path, upstream: str, pair: Pair) -> AsyncGenerator[tuple[int, int]]:
    """In front of `upstream` (`host:port`); gives its ports of http and of https."""
    plain, secured = free_port(), free_port()
    example = EXAMPLE.read_text()
    for written, here in (
        ("listen 80;", f"listen 127.0.0.1:{plain};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{secured} ssl;"),
        ("server 127.0.0.1:8080;", f"server {upstream};"),
        (CERTIFICATE, str(pair.cert)),
        (KEY, str(pair.key)),
    ):
        assert example.count(written) == 1, written
        example = example.replace(written, here)
    (folder / "antiphon.conf").write_text(example)
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, user="user root;" if os.geteuid() == 0 else ""))
    process = await asyncio.create_subprocess_exec(
        *(program(), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"), stderr=asyncio.subprocess.PIPE
    )
    try:
        await _until_listening(process)
        yield plain, secured
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def _until_listening(process: asyncio.subprocess.Process) -> None:
    """Workers start when all ports are open."""
    assert process.stderr is not None
    said: list[str] = []
    async with asyncio.timeout(20):
        while line := (await process.stderr.readline()).decode():
            said.append(line)
            if "start worker process " in line:
                return
    raise AssertionError(f"nginx ended, having said {said}")
