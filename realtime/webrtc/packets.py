"""Packets of sound as a call passes them on."""

from typing import NamedTuple, Protocol, TypeAlias


class AudioPacket(NamedTuple):
    """One received packet (RFC 3550): `sequence` has 16 bits, `timestamp` 32, in units of the codec's clock.

    An empty payload is no sound: padding, or something else that the client numbers along with its sound.
    """

    sequence: int
    timestamp: int
    payload: bytes
    stream: int = 0
    """Another one than that of the packet before: the client has begun anew."""
    comfort_noise: bool = False
    """No sound either, and none will come for a while (RFC 3389)."""


class Lost(NamedTuple):
    """`samples` at 24 kHz did not come in time."""

    samples: int


class Silent(NamedTuple):
    """For `samples` at 24 kHz nothing was sent."""

    samples: int


Sound: TypeAlias = bytes | Lost | Silent
"""What a decoder is given, one after the other: bytes are a packet's payload."""


class Outgoing(NamedTuple):
    """One 20 ms packet to send. `timestamp` counts units of the codec's clock from the call's beginning."""

    payload: bytes
    timestamp: int


class PacketSource(Protocol):
    async def next(self) -> Outgoing:
        """Returns when the packet is due."""
        ...
