"""PCM16 mono in, bytes of a file format out, as soon as the format has them. Runs in the media worker."""

import struct
from dataclasses import dataclass
from typing import Literal, Protocol

import av
import numpy as np

from realtime.media.formats import AudioFormat

BYTES_PER_SAMPLE = 2
UNKNOWN_SIZE = 0xFFFF_FFFF
"""What a WAV header says of a length that is not known yet; readers then read to the end."""


class Encoder(Protocol):
    def encode(self, pcm: bytes) -> bytes:
        """Whole samples in; whatever is ready comes out, maybe nothing."""
        ...

    def finish(self) -> bytes: ...


class PcmEncoder:
    def encode(self, pcm: bytes) -> bytes:
        return pcm

    def finish(self) -> bytes:
        return b""


class WavEncoder:
    """One header before the first samples, never another."""

    def __init__(self, rate: int) -> None:
        self._owed = wav_header(rate)

    def encode(self, pcm: bytes) -> bytes:
        out, self._owed = self._owed + pcm, b""
        return out

    def finish(self) -> bytes:
        return self.encode(b"")


def wav_header(rate: int) -> bytes:
    """RIFF header of a PCM16 mono stream of unknown length."""
    layout = struct.pack("<HHIIHH", 1, 1, rate, rate * BYTES_PER_SAMPLE, BYTES_PER_SAMPLE, 8 * BYTES_PER_SAMPLE)
    size = struct.pack("<I", UNKNOWN_SIZE)
    return b"RIFF" + size + b"WAVEfmt " + struct.pack("<I", len(layout)) + layout + b"data" + size


@dataclass(frozen=True)
class Recipe:
    """How FFmpeg is told to write a format with little delay. `sample_format` is the codec's own."""

    container: str
    codec: Literal["libmp3lame", "libopus", "flac"]
    sample_format: str
    bit_rate: int
    container_options: dict[str, str]
    codec_options: dict[str, str]


RECIPES: dict[AudioFormat, Recipe] = {
    # No Xing header: it would promise a length that is not known while streaming.
    "mp3": Recipe("mp3", "libmp3lame", "s16p", 64_000, {"write_xing": "0", "id3v2_version": "0"}, {}),
    # A page per 20 ms packet (page_duration is in µs) instead of one per second.
    "opus": Recipe("ogg", "libopus", "s16", 48_000, {"page_duration": "20000"}, {"application": "audio"}),
    # Level 2 cuts blocks of 27 ms, level 5 of 105 ms: the smaller block is the sooner one.
    "flac": Recipe("flac", "flac", "s16", 0, {}, {"compression_level": "2"}),
}


class _Sink:
    """The write side of a file that cannot be rewound."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(data)
        return len(data)

    def drain(self) -> bytes:
        out = b"".join(self._pieces)
        self._pieces.clear()
        return out


class ContainerEncoder:
    """A format that FFmpeg writes. Raises ValueError when the codec does not know the rate."""

    def __init__(self, recipe: Recipe, rate: int) -> None:
        self._recipe = recipe
        self._rate = rate
        self._samples = 0
        self._sink = _Sink()
        options = {**recipe.container_options, "flush_packets": "1"}
        self._container = av.open(self._sink, "w", format=recipe.container, container_options=options)
        self._stream = self._container.add_stream(  # pyright: ignore[reportUnknownMemberType]  PyAV leaves **kwargs open
            recipe.codec, rate, recipe.codec_options
        )
        self._stream.layout = "mono"
        self._stream.format = recipe.sample_format
        if recipe.bit_rate:
            self._stream.bit_rate = recipe.bit_rate
        self._stream.codec_context.open()

    def encode(self, pcm: bytes) -> bytes:
        samples = np.frombuffer(pcm, dtype="<i2")
        if samples.size == 0:
            return b""
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format=self._recipe.sample_format, layout="mono")
        frame.sample_rate = self._rate
        frame.pts = self._samples
        self._samples += samples.size
        self._mux(frame)
        return self._sink.drain()

    def finish(self) -> bytes:
        if self._samples:
            self._mux(None)
        self._container.close()
        return self._sink.drain()

    def _mux(self, frame: av.AudioFrame | None) -> None:
        self._container.mux(self._stream.encode(frame))  # pyright: ignore[reportUnknownMemberType]  PyAV leaves Packet open


def encoder_for(format: AudioFormat, rate: int) -> Encoder:
    match format:
        case "pcm":
            return PcmEncoder()
        case "wav":
            return WavEncoder(rate)
        case _:
            return ContainerEncoder(RECIPES[format], rate)
