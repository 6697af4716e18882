"""The head of a request as the front reads it: without taking it, so that the node gets the connection as it was opened."""

import asyncio
import re
import socket
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

MOST_BYTES = 32 << 10
"""A longer head goes to any node, which refuses it in due form."""
HEAD_END = b"\r\n\r\n"
_MOST_FIELDS = 64
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OF_A_NODE = re.compile(r"(?:/v1/realtime/calls/rtc|/pictures/pic)_([0-9]{1,4})_")


class Wanted(NamedTuple):
    """What a request's first line says about where it belongs. `session_id`: of the session that the client comes back to.
    `node`: the number of the node that has the call, or the picture, which it is about."""

    path: str = ""
    session_id: str | None = None
    node: int | None = None


def wanted(head: bytes) -> Wanted:
    """Whatever the bytes are: what is no request belongs nowhere in particular."""
    parts = _begun(head).partition(b"\r\n")[0].decode("latin-1").split(" ")
    if len(parts) != 3 or not parts[1].startswith("/"):
        return Wanted()
    raw_path, _, query = parts[1].partition("?")
    path = unquote(raw_path)
    named = _OF_A_NODE.match(path)
    return Wanted(path, _session_id(query), int(named[1]) if named else None)


def is_whole(head: bytes) -> bool:
    return HEAD_END in _begun(head) or len(head) >= MOST_BYTES


def is_filled_with_nothing(head: bytes) -> bool:
    """Blank lines, and what is behind them is not all there: a node would skip them, and wait for it without a limit."""
    begun = _begun(head)
    return len(begun) < len(head) and HEAD_END not in begun


def _begun(head: bytes) -> bytes:
    """Without the blank lines before a request, which servers skip (RFC 9112, section 2.2)."""
    return head.lstrip(b"\r\n")


def _session_id(query: str) -> str | None:
    """Of `resume=<session id>.<secret>`."""
    try:
        fields = parse_qsl(query, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return None
    token = next((value for name, value in fields if name == "resume"), "")
    named = _SESSION.fullmatch(token.partition(".")[0])
    return named[0] if named else None


async def peek_head(connection: socket.socket) -> bytes:
    """Waits for all of it, or MOST_BYTES. `connection` is TCP and does not block. Raises OSError when the client goes before."""
    head = b""
    try:
        while not is_whole(head):
            # Bytes that are only looked at stay where they are, so a plain poll would return at once again.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(head) + 1)
            await _readable(connection)
            seen = connection.recv(MOST_BYTES, socket.MSG_PEEK)
            if len(seen) <= len(head):
                raise ConnectionResetError("the client went before it had said what it wants")
            head = seen
    finally:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    return head


async def _readable(connection: socket.socket) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection.fileno())
