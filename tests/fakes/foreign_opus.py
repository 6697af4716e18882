"""Opus packets as other programs send them, made by FFmpeg: other lengths, two channels, pauses that are not transmitted."""

from fractions import Fraction

import av
import numpy as np
from numpy.typing import NDArray

from realtime.media.opus import OpusEncoder

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


class SparingEncoder(OpusEncoder):
    """As in browsers that are asked for DTX: in pauses one packet of a byte, and every 400 ms a small one and that again."""

    def __init__(self) -> None:
        super().__init__()
        self._set(4016, 1)

    def sent(self, pcm: bytes) -> list[bytes]:
        """A packet for each slot of 20 ms of PCM16 mono at 24 kHz; b"": nothing is sent."""
        size = self.frame_samples * 2
        made = [self.encode(pcm[start : start + size]) for start in range(0, len(pcm) - size + 1, size)]
        return [b"" if place and len(packet) < 3 and len(made[place - 1]) < 3 else packet for place, packet in enumerate(made)]
