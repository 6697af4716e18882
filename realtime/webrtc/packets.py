"""Packets of sound as a call passes them on."""

from typing import NamedTuple, Protocol


class AudioPacket(NamedTuple):
    """One received Opus packet (RFC 3550, RFC 7587): `sequence` has 16 bits, `timestamp` 32, in 48 kHz units."""

    sequence: int
    timestamp: int
    payload: bytes


class Outgoing(NamedTuple):
    """One 20 ms Opus packet to send. `timestamp` counts 48 kHz units from the call's beginning."""

    payload: bytes
    timestamp: int


class PacketSource(Protocol):
    async def next(self) -> Outgoing:
        """Returns when the packet is due."""
        ...
