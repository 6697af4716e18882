"""Both ends of a TCP connection prove to each other that they know the deployment's secret, and neither tells it.

    server → client   MAGIC, its nonce
    client → server   what it wants (one byte), its nonce, HMAC-SHA256 over "client", that byte and both nonces
    server → client   HMAC-SHA256 over "server", the same byte and both nonces,
                    or FULL: there is no room now

The client goes first, so that whoever only knocks learns nothing. What is sent afterwards is neither encrypted nor signed: where
others can listen on the network between two hosts, it belongs into a tunnel.
"""

import asyncio
import contextlib
import hmac
import secrets
import socket
from collections.abc import Callable
from enum import Enum

from engines.network.addresses import TcpAddress
from engines.network.raw_connection import RawConnection

MAGIC = b"antiphon2"
NONCE_BYTES = 32
PROOF_BYTES = 32
FULL = b"full".ljust(PROOF_BYTES)
"""In the place of a proof, which it never is."""
HANDSHAKE_LIMIT_S = 5.0


class Purpose(Enum):
    CONTROL = b"c"
    PAYLOADS = b"p"


class HandshakeFailed(ConnectionError):
    """The other side does not know the secret, or is something else altogether."""


class DoorFull(ConnectionRefusedError):
    """Nothing is wrong with either side: there may be room a moment later."""


async def dial(address: TcpAddress, secret: bytes, purpose: Purpose) -> RawConnection:
    """Raises OSError."""
    connection = await RawConnection.open(address)
    try:
        await introduce(connection, secret, purpose)
    except BaseException:
        connection.close()
        raise
    return connection


async def introduce(connection: RawConnection, secret: bytes, purpose: Purpose) -> None:
    """The client's part. Raises OSError (a TimeoutError among them)."""
    async with asyncio.timeout(HANDSHAKE_LIMIT_S):
        greeting = await connection.read(len(MAGIC) + NONCE_BYTES)
        if not greeting.startswith(MAGIC):
            raise HandshakeFailed(f"expected {MAGIC!r} first, got {greeting[: len(MAGIC)]!r}: is this a worker's port?")
        nonce = secrets.token_bytes(NONCE_BYTES)
        said = purpose.value + greeting[len(MAGIC) :] + nonce
        await connection.send(purpose.value + nonce + _proof(secret, b"client", said))
        try:
            answer = await connection.read(PROOF_BYTES)
        except ConnectionError as closed:
            raise HandshakeFailed("the other side hung up: it has another secret") from closed
        if answer == FULL:
            raise DoorFull("too many are connected there")
        if not hmac.compare_digest(answer, _proof(secret, b"server", said)):
            raise HandshakeFailed("the other side does not know the secret")


def nothing_against(_: Purpose) -> str:
    return ""


async def examine(connection: RawConnection, secret: bytes, refusal: Callable[[Purpose], str] = nothing_against) -> Purpose:
    """The server's part; returns what the client wants. `refusal` says why there is no room for that now; empty: there is.
    Raises OSError (a TimeoutError among them)."""
    async with asyncio.timeout(HANDSHAKE_LIMIT_S):
        nonce = secrets.token_bytes(NONCE_BYTES)
        await connection.send(MAGIC + nonce)
        request = await connection.read(1 + NONCE_BYTES + PROOF_BYTES)
        wanted, client_nonce, proof = request[:1], request[1 : 1 + NONCE_BYTES], request[1 + NONCE_BYTES :]
        said = wanted + nonce + client_nonce
        if not hmac.compare_digest(proof, _proof(secret, b"client", said)):
            raise HandshakeFailed("a peer with another secret, or none")
        purpose = next((purpose for purpose in Purpose if purpose.value == wanted), None)
        if purpose is None:
            raise HandshakeFailed(f"a peer that wants {wanted!r}, which is nothing of ours")
        if why := refusal(purpose):
            turn_away(connection)
            raise DoorFull(why)
        await connection.send(_proof(secret, b"server", said))
        return purpose


def turn_away(connection: RawConnection) -> None:
    """Whoever is examined hears that there is no room, and nothing more; `examine` fails."""
    with contextlib.suppress(OSError):
        connection.socket.send(FULL)
        connection.socket.shutdown(socket.SHUT_RDWR)


def _proof(secret: bytes, side: bytes, said: bytes) -> bytes:
    return hmac.digest(secret, side + said, "sha256")
