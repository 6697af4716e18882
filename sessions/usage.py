"""What tenants use, and one meter of it: of a session, or of one-shot requests. Its totals only grow."""

from collections.abc import Mapping
from typing import Final

AUDIO_IN_S: Final = "audio_in_s"
AUDIO_OUT_S: Final = "audio_out_s"
"""Of answers: all that was made, also what an interruption kept from being heard."""
TOKENS_IN: Final = "tokens_in"
TOKENS_OUT: Final = "tokens_out"
"""As the language model counts them, of an answer that is broken off those until then."""
PICTURES: Final = "pictures"
FRAMES: Final = "frames"
"""Finished ones, of films."""
REQUESTS: Final = "requests"
"""One-shot, over REST, that were answered."""

_BYTES_PER_S = 48_000


class UsageMeter:
    """`before` is what another node has counted of the same session."""

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        self._totals = dict(before or {})
        self.written: Mapping[str, float] = self.totals
        """What the store has with the session: whoever takes it over goes on from there. The bill never runs ahead of it."""

    @property
    def totals(self) -> Mapping[str, float]:
        return dict(self._totals)

    def add(self, what: str, amount: float) -> None:
        if amount:
            self._totals[what] = self._totals.get(what, 0.0) + amount

    def hear(self, pcm: bytes) -> None:
        """`pcm` from the client: PCM16 mono, 24 kHz."""
        self.add(AUDIO_IN_S, seconds_of(pcm))

    def speak(self, pcm: bytes) -> None:
        """To the client."""
        self.add(AUDIO_OUT_S, seconds_of(pcm))


def seconds_of(pcm: bytes) -> float:
    return len(pcm) / _BYTES_PER_S
