"""Opus packets as other programs send them, made by FFmpeg: other lengths, two channels, pauses that are not transmitted."""

from fractions import Fraction

import av
import numpy as np
from numpy.typing import NDArray

RATE = 48_000


def packets(
    samples: NDArray[np.int16], frame_ms: float = 20, channels: int = 1, application: str = "voip", dtx: bool = False
) -> list[bytes]:
    """`samples` are mono at 48 kHz; every channel has them."""
    context = av.CodecContext.create("libopus", "w")
    assert isinstance(context, av.AudioCodecContext)
    layout = "mono" if channels == 1 else "stereo"
    context.format, context.layout, context.sample_rate = "s16", layout, RATE
    context.time_base = Fraction(1, RATE)
    context.bit_rate = 32_000 * channels
    context.options = {"frame_duration": f"{frame_ms:g}", "application": application, "dtx": str(int(dtx))}
    frames_of = int(RATE * frame_ms / 1000)
    made: list[bytes] = []
    for start in range(0, len(samples) - frames_of + 1, frames_of):
        interleaved = np.repeat(samples[start : start + frames_of], channels).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(interleaved, format="s16", layout=layout)
        frame.sample_rate, frame.pts = RATE, start
        made += [bytes(packet) for packet in context.encode(frame)]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]  PyAV leaves Packet open
    return made
