"""Picture files as people and attackers upload them."""

import struct
import zlib
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def drawn(height: int = 12, width: int = 16, seed: int = 0) -> NDArray[np.uint8]:
    """RGB [height, width, 3]."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def file(picture: NDArray[Any] | Image.Image, format: str = "PNG", **options: Any) -> bytes:
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    written = BytesIO()
    image.save(written, format, **options)
    return written.getvalue()


def opened(data: bytes) -> Image.Image:
    return Image.open(BytesIO(data))


def png_bomb(width: int, height: int) -> bytes:
    """A few hundred bytes that claim, and begin to be, a white picture of this size."""
    rows = zlib.compress(bytes(1 << 20), 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def webp_bomb(side: int = 16_383) -> bytes:
    """A moving picture of two frames of one pixel, on a canvas of side × side."""
    still = file(np.zeros((1, 1, 3), np.uint8), "WEBP", lossless=True)[12:]
    frame = b"\0" * 3 + b"\0" * 3 + b"\0" * 6 + b"\x0a\0\0" + b"\0" + still
    canvas = (side - 1).to_bytes(3, "little")
    chunks = _riff(b"VP8X", b"\x02\0\0\0" + canvas + canvas) + _riff(b"ANIM", b"\0" * 6) + 2 * _riff(b"ANMF", frame)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _riff(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
