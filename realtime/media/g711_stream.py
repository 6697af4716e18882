"""One voice as a stream of G.711 packets, in each direction. Runs in the media worker."""

from collections.abc import Iterator

import numpy as np

from realtime.media import g711
from realtime.media.g711 import Law
from realtime.media.opus_frames import BYTES_PER_SAMPLE, FRAME_MS, RATE_HZ
from realtime.media.resampler import Resampler

FRAME_SAMPLES = g711.RATE_HZ * FRAME_MS // 1000
GUESSED_SAMPLES = 60 * g711.RATE_HZ // 1000
"""A guess goes on for so long, ever more softly; then it is silence."""
REMEMBERED_SAMPLES = 40 * g711.RATE_HZ // 1000
SHORTEST_PERIOD, LONGEST_PERIOD = 40, 160
"""One of a voice at 200 Hz to 50 Hz, or several of a higher one."""
COMPARED_SAMPLES = 80
FIRST_LOUDNESS = 0.8
"""Of the guess: a little softer, for it may be wrong. On speech this and the lengths above give the least error (−1 to −2 dB)."""
SILENCE_PIECE_SAMPLES = g711.RATE_HZ // 5


class G711Speaker:
    """PCM16 mono at 24 kHz in, in pieces of any size; packets of 20 ms out."""

    def __init__(self, law: Law) -> None:
        self._law: Law = law
        self._resampler = Resampler(RATE_HZ, g711.RATE_HZ)
        self._odd = b""
        self._waiting = bytearray()

    def speak(self, pcm: bytes) -> Iterator[bytes]:
        """The packets that are full by now. Take all before the next call."""
        pcm = self._odd + pcm
        whole = len(pcm) // BYTES_PER_SAMPLE * BYTES_PER_SAMPLE
        self._odd = pcm[whole:]
        yield from self._packets(self._resampler.resample(pcm[:whole]))

    def finish(self) -> Iterator[bytes]:
        """The rest, and silence that fills the last packet. Half a sample is dropped."""
        yield from self._packets(self._resampler.finish())
        missing = -len(self._waiting) % FRAME_SAMPLES
        yield from self._packets(bytes(missing * BYTES_PER_SAMPLE))

    def _packets(self, pcm: bytes) -> Iterator[bytes]:
        self._waiting += g711.encode(pcm, self._law)
        while len(self._waiting) >= FRAME_SAMPLES:
            packet = bytes(self._waiting[:FRAME_SAMPLES])
            del self._waiting[:FRAME_SAMPLES]
            yield packet


class G711Listener:
    """Packets, losses and pauses in the order of their sending in; PCM16 mono at 24 kHz out, as long as what came in.

    What was lost is guessed at by going on with the last period of the voice (as in G.711's appendix I).
    """

    damaged = 0
    """Any bytes are sound."""

    def __init__(self, law: Law) -> None:
        self._law: Law = law
        self._resampler = Resampler(g711.RATE_HZ, RATE_HZ)
        self._last = np.zeros(0, np.float32)

    def hear(self, packet: bytes) -> Iterator[bytes]:
        pcm = g711.decode(packet, self._law)
        sound = np.frombuffer(pcm, "<i2").astype(np.float32)
        self._last = np.concatenate([self._last, sound])[-REMEMBERED_SAMPLES:]
        yield self._resampler.resample(pcm)

    def lose(self, samples: int) -> Iterator[bytes]:
        lost = samples * g711.RATE_HZ // RATE_HZ
        guessed = min(lost, GUESSED_SAMPLES)
        if len(self._last) == REMEMBERED_SAMPLES and guessed:
            softer = np.linspace(FIRST_LOUDNESS, 0, GUESSED_SAMPLES, dtype=np.float32)[:guessed]
            sound = np.resize(self._last[-_period(self._last) :], guessed) * softer
            self._last = np.zeros(0, np.float32)
            yield self._resampler.resample(sound.astype("<i2").tobytes())
            lost -= guessed
        yield from self._silence(lost)

    def pause(self, samples: int) -> Iterator[bytes]:
        self._last = np.zeros(0, np.float32)
        yield from self._silence(samples * g711.RATE_HZ // RATE_HZ)

    def finish(self) -> Iterator[bytes]:
        yield self._resampler.finish()

    def _silence(self, samples: int) -> Iterator[bytes]:
        for start in range(0, samples, SILENCE_PIECE_SAMPLES):
            yield self._resampler.resample(bytes(min(SILENCE_PIECE_SAMPLES, samples - start) * BYTES_PER_SAMPLE))


def _period(sound: np.ndarray[tuple[int], np.dtype[np.float32]]) -> int:
    """In samples: by how much the sound, moved, is most like itself."""
    start = len(sound) - COMPARED_SAMPLES
    newest = sound[start:]
    likeness: list[float] = []
    for period in range(SHORTEST_PERIOD, LONGEST_PERIOD + 1):
        older = sound[start - period : len(sound) - period]
        likeness.append(float(newest @ older) / float(np.linalg.norm(older) + 1))
    return SHORTEST_PERIOD + int(np.argmax(likeness))
