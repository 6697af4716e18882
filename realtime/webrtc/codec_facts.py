"""What of a codec must be known without decoding: its clock, how long a packet is, what silence is on the wire."""

from typing import Protocol

from realtime.media import g711, g711_stream, opus_frames
from realtime.media.call_codecs import CallCodec
from realtime.media.opus_frames import FRAME_MS


class CodecFacts(Protocol):
    """Ticks are units of the RTP clock."""

    clock_hz: int
    silence: bytes
    """A packet of 20 ms; packets of a fresh encoder may follow it."""
    pause: bytes
    """After `silence`: for a while nothing will be sent."""
    most_concealed_s: float
    """What is lost in a row beyond this is silence."""

    def ticks(self, payload: bytes) -> int:
        """How long its sound is; 0 for what is none."""
        ...

    def is_pause(self, payload: bytes) -> bool:
        """For a while nothing need come after it."""
        ...

    def has_copy(self, payload: bytes) -> bool:
        """Whether it brings a copy of the sound before it."""
        ...


class _Opus:
    clock_hz = opus_frames.CLOCK_HZ
    silence = opus_frames.OPUS_SILENCE
    pause = opus_frames.OPUS_PAUSE
    most_concealed_s = opus_frames.MAX_PACKET_MS / 1000

    def ticks(self, payload: bytes) -> int:
        return opus_frames.packet_ticks(payload)

    def is_pause(self, payload: bytes) -> bool:
        return opus_frames.is_pause(payload)

    def has_copy(self, payload: bytes) -> bool:
        return opus_frames.has_copy(payload)


class _G711:
    """A byte a tick. Comfort noise comes as packets of a type of its own."""

    clock_hz = g711.RATE_HZ
    most_concealed_s = g711_stream.GUESSED_SAMPLES / g711.RATE_HZ

    def __init__(self, silent_byte: int) -> None:
        self.silence = self.pause = bytes([silent_byte]) * (self.clock_hz * FRAME_MS // 1000)

    def ticks(self, payload: bytes) -> int:
        return len(payload)

    def is_pause(self, payload: bytes) -> bool:
        return False

    def has_copy(self, payload: bytes) -> bool:
        return False


FACTS: dict[CallCodec, CodecFacts] = {"opus": _Opus(), "pcmu": _G711(0xFF), "pcma": _G711(0xD5)}
