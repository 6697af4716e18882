"""The codecs of calls. Without any codec, for the gateway to import."""

from typing import Literal, TypeAlias

import msgspec

CallCodec: TypeAlias = Literal["opus", "pcmu", "pcma"]

BIT_RATE = 32_000
MOST_EXPECTED_LOSS_PERCENT = 30
"""Beyond it redundancy costs more of the voice than it saves."""


class Voice(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer is encoded. `bit_rate`, in bits per second, and `expected_loss_percent` are Opus's: with any loss expected
    it spends bits on a second, coarser copy of each frame in the next one (in-band FEC)."""

    codec: CallCodec = "opus"
    bit_rate: int = BIT_RATE
    expected_loss_percent: int = 10
