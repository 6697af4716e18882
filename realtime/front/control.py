"""The front's control socket: what an operator's command asks of it, on the same machine and as the same user."""

import asyncio
import os
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeAlias

from realtime.front.messages import Answer, ToFront, answer_decoder, encoder, order_decoder

FOLDER = "antiphon-front"
LONGEST_LINE_BYTES = 1 << 20

Obey: TypeAlias = Callable[[ToFront], AsyncIterator[Answer]]
"""Answers until it is done."""


class NoFront(ConnectionError):
    """Nobody listens there: one sentence for the operator."""


def control_path(port: int) -> Path:
    """Of the front that listens on this port. Its folder is this user's alone."""
    return Path(tempfile.gettempdir()) / f"{FOLDER}-{os.getuid()}" / f"{port}.sock"


async def serve_control(path: Path, obey: Obey) -> asyncio.Server:
    """Until the result is closed. Raises OSError, PermissionError among them when the folder is somebody else's."""
    listening = _listening(path)

    async def heed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            order = order_decoder.decode(await reader.readline())
            async for answer in obey(order):
                writer.write(encoder.encode(answer) + b"\n")
                await writer.drain()
        except (OSError, ValueError) as wrong:  # it has hung up, or speaks otherwise
            writer.write(encoder.encode(Answer(done=True, fault=f"not understood: {wrong}")) + b"\n")
        finally:
            writer.close()

    return await asyncio.start_unix_server(heed, sock=listening, limit=LONGEST_LINE_BYTES)


def _listening(path: Path) -> socket.socket:
    _own_folder(path.parent)
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


async def ask(path: Path, order: ToFront) -> AsyncIterator[Answer]:
    """The front's answers to `order`. Raises NoFront."""
    try:
        reader, writer = await asyncio.open_unix_connection(str(path), limit=LONGEST_LINE_BYTES)
    except OSError as absent:
        raise NoFront(
            f"no server with several nodes listens at {path} ({absent.strerror}): was it started with --nodes and this port?"
        ) from absent
    try:
        writer.write(encoder.encode(order) + b"\n")
        while line := await reader.readline():
            answer = answer_decoder.decode(line)
            yield answer
            if answer.done:
                return
        raise NoFront("the server hung up before it was done")
    finally:
        writer.close()


def _own_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode) or stat.S_IMODE(status.st_mode) & 0o077:
        raise PermissionError(f"{folder}: expected a folder of ours with mode 0700, got {stat.filemode(status.st_mode)}")
