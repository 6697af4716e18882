"""Which codec a call speaks, and what the client wishes of it: the rtpmap and fmtp lines of an offer (RFC 8866, RFC 7587)."""

import re
from collections.abc import Iterable, Mapping

import msgspec

from realtime.media.call_codecs import BIT_RATE, MOST_EXPECTED_LOSS_PERCENT, CallCodec, Voice

LEAST_BIT_RATE, MOST_BIT_RATE = 6_000, 64_000
"""What Opus can do at the least, and what a voice is worth at the most."""

_NAMES: dict[str, CallCodec] = {
    "opus/48000/2": "opus",
    "pcmu/8000": "pcmu",
    "pcmu/8000/1": "pcmu",
    "pcma/8000": "pcma",
    "pcma/8000/1": "pcma",
}
_COMFORT_NOISE = "cn/8000"
_STATIC = {"0": "pcmu/8000", "8": "pcma/8000", "13": _COMFORT_NOISE}
"""Types that need no rtpmap (RFC 3551, table 4)."""
_RTPMAP = re.compile(r"([0-9]{1,3}) ([!-~]{1,40})")
_NUMBER = re.compile(r"[0-9]{1,9}")


class OfferedSound(msgspec.Struct, frozen=True, kw_only=True):
    codec: CallCodec
    payload_type: int
    comfort_noise: int | None = None
    """Payload type of comfort noise beside G.711 (RFC 3389)."""
    bit_rate: int = BIT_RATE
    """Of what the client wants to hear, in bits per second."""
    redundancy: bool = False
    """It makes use of in-band FEC."""
    sparing: bool = False
    """It need not be sent silence."""

    def voice(self, reported_loss: float) -> Voice:
        """How an answer is encoded for a client that misses this part of the packets, 0 to 1."""
        percent = min(round(100 * reported_loss), MOST_EXPECTED_LOSS_PERCENT) if self.redundancy else 0
        return Voice(codec=self.codec, bit_rate=self.bit_rate, expected_loss_percent=percent)


def read_sound(formats: Iterable[str], rtpmaps: Iterable[str], fmtps: Iterable[str]) -> OfferedSound | None:
    """Opus if it is offered, else the first of PCMU and PCMA; None: nothing that this server speaks."""
    encodings = _encodings(list(formats), rtpmaps)
    known: list[tuple[int, CallCodec]] = [
        (number, _NAMES[encoding]) for number, encoding in encodings.items() if encoding in _NAMES
    ]
    if not known:
        return None
    number, codec = min(known, key=lambda found: found[1] != "opus")
    if codec == "opus":
        return _opus(number, _parameters(number, fmtps))
    comfort = next((kind for kind, encoding in encodings.items() if encoding == _COMFORT_NOISE), None)
    return OfferedSound(codec=codec, payload_type=number, comfort_noise=comfort)


def _opus(number: int, wishes: Mapping[str, str]) -> OfferedSound:
    asked = wishes.get("maxaveragebitrate", "")
    bit_rate = int(asked) if _NUMBER.fullmatch(asked) else BIT_RATE
    return OfferedSound(
        codec="opus",
        payload_type=number,
        bit_rate=min(max(bit_rate, LEAST_BIT_RATE), MOST_BIT_RATE),
        redundancy=wishes.get("useinbandfec") == "1",
        sparing=wishes.get("usedtx") == "1",
    )


def _encodings(formats: list[str], rtpmaps: Iterable[str]) -> dict[int, str]:
    """By payload type, in the client's order of preference. Types that RTCP's packets could be mistaken for do not count
    (RFC 5761, section 4)."""
    named = dict(_STATIC)
    for value in rtpmaps:
        if (match := _RTPMAP.fullmatch(value)) is not None:
            named[match[1]] = match[2].lower()
    usable = [kind for kind in formats if kind in named and int(kind) < 128 and not 64 <= int(kind) < 96]
    return {int(kind): named[kind] for kind in usable}


def _parameters(number: int, fmtps: Iterable[str]) -> dict[str, str]:
    for value in fmtps:
        kind, _, parameters = value.partition(" ")
        if kind == str(number):
            pairs = (parameter.strip().partition("=") for parameter in parameters.split(";"))
            return {name.lower(): setting for name, _, setting in pairs}
    return {}
