"""Frames on a control socket: a 4-byte big-endian length, then that many bytes of msgpack."""

import asyncio
import struct
from typing import Generic, TypeVar

import msgspec

MAX_FRAME_BYTES = 32 << 20
"""Above the largest payload that travels inline: five minutes of 48 kHz PCM16."""

READ_BYTES = 65_536
"""At a time, of a stream."""

_LENGTH = struct.Struct(">I")


class FrameError(ConnectionError):
    """The peer sent something that is no frame of ours; the connection cannot go on."""


class FrameTooLarge(ValueError):
    """The message does not fit into one frame; nothing was sent."""


T = TypeVar("T")


class FrameCutter(Generic[T]):
    """Makes messages of a stream of bytes, wherever it was cut: `feed` it, then take messages until there is none.

    Linear in the bytes fed, whatever their number of parts. Arrays in a message are views of bytes that nothing else uses.
    """

    def __init__(self, decoder: msgspec.msgpack.Decoder[T]) -> None:
        self._decoder = decoder
        self._data = b""
        self._at = 0
        self._body = bytearray()
        """Of a frame whose end has not come yet; its length is known."""
        self._missing = 0

    def feed(self, data: bytes) -> None:
        if self._missing:
            data = self._complete(data)
        self._data = self._data[self._at :] + data
        self._at = 0

    def next(self) -> T | None:
        """The next whole message, or None when more bytes must come first. Raises FrameError, and has no more to say then."""
        if self._body:
            return self._assembled()
        start = self._at + _LENGTH.size
        if len(self._data) < start:
            return None
        (length,) = _LENGTH.unpack_from(self._data, self._at)
        if length > MAX_FRAME_BYTES:
            raise FrameError(f"frame of {length} bytes, at most {MAX_FRAME_BYTES} are allowed")
        end = start + length
        if len(self._data) < end:
            self._begin(length, self._data[start:])
            return None
        self._at = end
        return self._decode(self._data[start:end])

    def end(self) -> None:
        """The stream has ended. Raises FrameError when that was inside a frame."""
        if self._missing:
            raise FrameError(f"connection cut inside a frame of {len(self._body)} bytes")
        if len(self._data) > self._at:
            raise FrameError("connection cut inside a frame header")

    def _begin(self, length: int, head: bytes) -> None:
        self._body = bytearray(length)
        self._body[: len(head)] = head
        self._missing = length - len(head)
        self._data, self._at = b"", 0

    def _complete(self, data: bytes) -> bytes:
        """Returns what comes after the frame."""
        filled = len(self._body) - self._missing
        part = memoryview(data)[: self._missing]
        self._body[filled : filled + len(part)] = part
        self._missing -= len(part)
        return data[len(part) :]

    def _assembled(self) -> T | None:
        if self._missing:
            return None
        body, self._body = self._body, bytearray()
        return self._decode(memoryview(body).toreadonly())

    def _decode(self, body: bytes | memoryview) -> T:
        try:
            return self._decoder.decode(body)
        except (msgspec.MsgspecError, RecursionError) as bad:
            raise FrameError(f"frame that is no message of ours: {bad}") from bad


class FrameReader(Generic[T]):
    """Decodes frames of one message union from a stream."""

    def __init__(self, stream: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[T]) -> None:
        self._stream = stream
        self._frames = FrameCutter(decoder)

    async def next(self) -> T | None:
        """The next message, or None when the peer closed between frames. Raises FrameError."""
        while (message := self._frames.next()) is None:
            if not (data := await self._stream.read(READ_BYTES)):
                self._frames.end()
                return None
            self._frames.feed(data)
        return message


def frame(body: bytes) -> bytes:
    """Raises FrameTooLarge."""
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"{len(body)} bytes, at most {MAX_FRAME_BYTES} fit into one message")
    return _LENGTH.pack(len(body)) + body
