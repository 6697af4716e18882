"""One voice as a stream of Opus packets, in each direction. Runs in the media worker."""

from collections.abc import Iterator

import numpy as np

from realtime.media.call_codecs import Voice
from realtime.media.opus import NotOpus, OpusDecoder, OpusEncoder
from realtime.media.opus_frames import BYTES_PER_SAMPLE, CLOCK_HZ, MAX_PACKET_MS, RATE_HZ, SAMPLES_PER_FRAME, packet_ticks

FRAME_BYTES = SAMPLES_PER_FRAME * BYTES_PER_SAMPLE
GRAIN_SAMPLES = RATE_HZ // 400
"""Opus counts in pieces of 2.5 ms."""
MOST_CONCEALED_SAMPLES = RATE_HZ * MAX_PACKET_MS // 1000
"""Nobody guesses for longer what was said; then it is silence."""
SILENCE_PIECE_SAMPLES = RATE_HZ // 5


class OpusSpeaker:
    """PCM16 mono at 24 kHz in, in pieces of any size; packets of 20 ms out.

    A listener hears each sample 6.5 ms late, since the codec looks that far ahead; so n samples make ⌈(n + 156) / 480⌉ packets.
    """

    def __init__(self, voice: Voice = Voice()) -> None:  # noqa: B008 (a frozen value)
        self._encoder = OpusEncoder(RATE_HZ, voice.bit_rate, voice.expected_loss_percent)
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
    """Packets, losses and pauses in the order of their sending in; PCM16 mono at 24 kHz out, as long as what came in.

    What was lost is held back until the next packet, which may bring a copy of the end of it. Before that the decoder guesses,
    up to 120 ms; what is longer is silence.
    """

    def __init__(self) -> None:
        self._decoder = OpusDecoder()
        self._lost_samples = 0
        self.damaged = 0
        """Packets that could not be decoded; they count as lost."""

    def hear(self, packet: bytes) -> Iterator[bytes]:
        """The sound of the packet, and before it that of what was lost before it."""
        samples = packet_ticks(packet) * RATE_HZ // CLOCK_HZ
        try:
            if self._lost_samples:
                yield from self._recover(packet, samples)
            yield self._decoder.decode(packet)
        except NotOpus:
            self.damaged += 1
            self._lost_samples += samples

    def lose(self, samples: int) -> Iterator[bytes]:
        """Nothing yet."""
        self._lost_samples += samples
        return iter(())

    def pause(self, samples: int) -> Iterator[bytes]:
        """Silence; what was lost before it is guessed at."""
        yield from self._guess()
        yield from silence(samples)

    def finish(self) -> Iterator[bytes]:
        yield from self._guess()

    def _recover(self, packet: bytes, samples: int) -> Iterator[bytes]:
        copied = min(samples, self._lost_samples) // GRAIN_SAMPLES * GRAIN_SAMPLES
        self._lost_samples -= copied
        yield from self._guess()
        if copied:
            self._lost_samples = copied  # should it be no Opus packet
            yield self._decoder.decode_fec(packet, copied)
            self._lost_samples = 0

    def _guess(self) -> Iterator[bytes]:
        lost, self._lost_samples = self._lost_samples, 0
        guessed = min(lost, MOST_CONCEALED_SAMPLES) // GRAIN_SAMPLES * GRAIN_SAMPLES
        if guessed:
            pcm = self._decoder.conceal(guessed)
            yield faded(pcm) if lost > MOST_CONCEALED_SAMPLES else pcm
        yield from silence(lost - guessed)


def silence(samples: int) -> Iterator[bytes]:
    for start in range(0, samples, SILENCE_PIECE_SAMPLES):
        yield bytes(min(SILENCE_PIECE_SAMPLES, samples - start) * BYTES_PER_SAMPLE)


def faded(pcm: bytes) -> bytes:
    """The last 20 ms go down to nothing, so that silence may follow."""
    samples = np.frombuffer(pcm, "<i2").astype(np.float32)
    samples[-SAMPLES_PER_FRAME:] *= np.linspace(1, 0, min(SAMPLES_PER_FRAME, len(samples)), dtype=np.float32)
    return samples.astype("<i2").tobytes()
