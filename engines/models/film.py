"""Frames as a film: H.264 in MP4."""

from fractions import Fraction
from io import BytesIO
from typing import Any, TypeAlias, cast

import av
import numpy as np
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[np.uint8]

ffmpeg = cast(Any, av)
"""The library is typed in part."""

OPTIONS = {"crf": "20", "preset": "veryfast", "bf": "0", "threads": "1"}
"""Near what the eye can tell. No frames that lean on later ones: presentation order is then the order of the stream, which keeps
no times. One thread: the same frames give the same bytes, and the worker's other models have the other cores."""
INDEX_BYTES, INDEX_BYTES_A_FRAME = 2_048, 32
"""Room for the index, which is written last: 1,100 bytes and at most 24 a frame."""


def reel(frames: Pixels, frames_per_s: int) -> bytes:
    """`frames` RGB [n, h, w, 3] as a stream of their own (Annex B): reels of equal size can be joined by joining their bytes. An
    odd height or width repeats its last line, because colour has half the resolution."""
    _, height, width, _ = frames.shape
    encoder = ffmpeg.CodecContext.create("libx264", "w")
    encoder.width, encoder.height = width + width % 2, height + height % 2
    encoder.pix_fmt = "yuv420p"
    encoder.time_base = Fraction(1, frames_per_s)
    encoder.options = OPTIONS
    even = np.pad(frames, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    pictures = [ffmpeg.VideoFrame.from_ndarray(picture, "rgb24") for picture in even]
    return b"".join(bytes(packet) for picture in (*pictures, None) for packet in encoder.encode(picture))


def film(reels: bytes, frames_per_s: int) -> bytes:
    """The joined reels as an MP4 file, its index in front: players start before they have all of it."""
    file = BytesIO()
    with ffmpeg.open(BytesIO(reels), format="h264") as source:
        pictures = source.streams.video[0]
        packets = [packet for packet in source.demux(pictures) if packet.size]
        room = {"moov_size": str(INDEX_BYTES + INDEX_BYTES_A_FRAME * len(packets))}
        with ffmpeg.open(file, "w", format="mp4", options=room) as target:
            track = target.add_stream_from_template(pictures)
            for number, packet in enumerate(packets):
                packet.stream, packet.time_base = track, Fraction(1, frames_per_s)
                packet.pts = packet.dts = number
                packet.duration = 1
                target.mux(packet)
    return file.getvalue()
