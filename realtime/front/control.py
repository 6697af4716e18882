"""The front's control socket: what an operator's command asks of it, on the same machine and as the same user."""

import asyncio
import contextlib
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
        with contextlib.closing(writer), contextlib.suppress(OSError):  # it has hung up
            try:
                order = order_decoder.decode(await reader.readline())
            except ValueError as wrong:
                await _say(writer, Answer(done=True, fault=f"not understood: {wrong}"))
                return
            async for answer in obey(order):
                await _say(writer, answer)

    return await asyncio.start_unix_server(heed, sock=listening, limit=LONGEST_LINE_BYTES)


async def _say(writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Raises OSError when nobody hears it."""
    if writer.is_closing():  # uvloop would raise RuntimeError
        raise ConnectionResetError("it has hung up")
    writer.write(encoder.encode(answer) + b"\n")
    await writer.drain()


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
