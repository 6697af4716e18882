"""`antiphon worker` as a process, with the fake model, and the deployment that gateways share with it."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from engines.deployment import GraphSettings
from realtime.deployment import load

DEPLOYMENT = """
pipeline: fakes.pipelines:ECHOES
secret_file: {secret_file}
workers:
{workers}
stages:
  first: {{model: "fakes.echo_model:Echo", directory: "{folder}"}}
  second: {{model: "fakes.echo_model:Echo", directory: "{folder}"}}
"""
STAGES = {"both": "first, second", "one": "first", "two": "second"}


def free_place() -> str:
    """A TCP address of this machine where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


class Elsewhere:
    """The files lie in `folder`; `addresses` are of the worker `both`, or of `one` and `two`. `settings` are a gateway's; those
    with `secret` have one of their own."""

    def __init__(self, folder: Path, **addresses: str) -> None:
        self.folder = folder
        self.addresses = addresses
        self._file = self._written("d.yaml", "the secret of this deployment")

    def settings(self, secret: str = "") -> GraphSettings:
        return load(self._written("other.yaml", secret) if secret else self._file).graph

    @asynccontextmanager
    async def worker(self, name: str = "both", *options: str) -> AsyncGenerator[asyncio.subprocess.Process]:
        command = (sys.executable, "-m", "realtime.cli", "worker", name, "--deployment", str(self._file), *options)
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": "tests"}
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    def _written(self, name: str, secret: str) -> Path:
        secret_file = self.folder / f"{name}.secret"
        secret_file.write_text(secret)
        secret_file.chmod(0o600)
        file = self.folder / name
        workers = "\n".join(
            f'  {worker}: {{stages: [{STAGES[worker]}], address: "{address}"}}' for worker, address in self.addresses.items()
        )
        file.write_text(DEPLOYMENT.format(secret_file=secret_file, workers=workers, folder=self.folder))
        return file
