"""One voice as a stream of Opus packets, in each direction. Runs in the media worker."""

from collections.abc import Iterator

from realtime.media.opus import NotOpus, OpusDecoder, OpusEncoder
from realtime.media.opus_frames import BYTES_PER_SAMPLE, SAMPLES_PER_FRAME

FRAME_BYTES = SAMPLES_PER_FRAME * BYTES_PER_SAMPLE


class OpusSpeaker:
    """PCM16 mono at 24 kHz in, in pieces of any size; packets of 20 ms out.

    A listener hears each sample 6.5 ms late, since the codec looks that far ahead; so n samples make ⌈(n + 156) / 480⌉ packets.
    """

    def __init__(self) -> None:
        self._encoder = OpusEncoder()
        self._waiting = bytearray()
        self._silent = True

    def speak(self, pcm: bytes) -> Iterator[bytes]:
        """The packets that are full by now, encoded one by one as they are taken. Take all before the next call."""
        self._waiting += pcm
        while len(self._waiting) >= FRAME_BYTES:
            self._silent = False
            frame = bytes(self._waiting[:FRAME_BYTES])
            del self._waiting[:FRAME_BYTES]
            yield self._encoder.encode(frame)

    def finish(self) -> Iterator[bytes]:
        """The rest, and silence that brings the last sample out and fills the last packet. Half a sample is dropped."""
        rest = len(self._waiting) // BYTES_PER_SAMPLE * BYTES_PER_SAMPLE
        if rest or not self._silent:
            size = rest + self._encoder.lookahead * BYTES_PER_SAMPLE
            padding = bytes(size - rest + -size % FRAME_BYTES)
            del self._waiting[rest:]
            yield from self.speak(padding)


class OpusListener:
    """Packets in the order of their sending in; PCM16 mono at 24 kHz out.

    What was lost is held back until the next packet, which may bring a copy of it; no more than one packet of this stream holds.
    """

    def __init__(self) -> None:
        self._decoder = OpusDecoder()
        self._lost_samples = 0
        self._packet_samples = SAMPLES_PER_FRAME
        self.damaged = 0
        """Packets that could not be decoded; they count as lost."""

    def hear(self, packet: bytes) -> Iterator[bytes]:
        """The sound of the packet, and before it that of what was lost before it. b"": 20 ms have been lost."""
        if not packet:
            yield from self._lose(SAMPLES_PER_FRAME)
            return
        try:
            if self._lost_samples:
                yield self._decoder.decode_fec(packet, self._lost_samples)
                self._lost_samples = 0
            pcm = self._decoder.decode(packet)
        except NotOpus:
            self.damaged += 1
            yield from self._lose(self._packet_samples)
            return
        self._packet_samples = len(pcm) // BYTES_PER_SAMPLE
        yield pcm

    def finish(self) -> Iterator[bytes]:
        if self._lost_samples:
            yield self._decoder.conceal(self._lost_samples)

    def _lose(self, samples: int) -> Iterator[bytes]:
        self._lost_samples += samples
        excess = self._lost_samples - max(self._packet_samples, SAMPLES_PER_FRAME)
        if excess > 0:
            self._lost_samples -= excess
            yield self._decoder.conceal(excess)
