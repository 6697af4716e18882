"""Frames on a control socket: a 4-byte big-endian length, then that many bytes of msgpack."""

import asyncio
from typing import Generic, TypeVar

import msgspec

MAX_FRAME_BYTES = 32 << 20
"""Above the largest payload that travels inline: five minutes of 48 kHz PCM16."""


class FrameError(ConnectionError):
    """The peer sent something that is no frame of ours; the connection cannot go on."""


class FrameTooLarge(ValueError):
    """The message does not fit into one frame; nothing was sent."""


T = TypeVar("T")


class FrameReader(Generic[T]):
    """Decodes frames of one message union from a stream."""

    def __init__(self, stream: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[T]) -> None:
        self._stream = stream
        self._decoder = decoder

    async def next(self) -> T | None:
        """The next message, or None when the peer closed between frames. Raises FrameError."""
        try:
            header = await self._stream.readexactly(4)
        except asyncio.IncompleteReadError as cut:
            if not cut.partial:
                return None
            raise FrameError("connection cut inside a frame header") from cut
        length = int.from_bytes(header, "big")
        if length > MAX_FRAME_BYTES:
            raise FrameError(f"frame of {length} bytes, at most {MAX_FRAME_BYTES} are allowed")
        try:
            return self._decoder.decode(await self._stream.readexactly(length))
        except asyncio.IncompleteReadError as cut:
            raise FrameError(f"connection cut inside a frame of {length} bytes") from cut
        except msgspec.MsgspecError as bad:
            raise FrameError(f"frame that is no message of ours: {bad}") from bad


def frame(body: bytes) -> bytes:
    """Raises FrameTooLarge."""
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"{len(body)} bytes, at most {MAX_FRAME_BYTES} fit into one message")
    return len(body).to_bytes(4, "big") + body
