"""The streams of a client's SRTP: the library keeps state for each as long as the call lasts, and looks at all of them for each
packet. Pure."""

from aiortc.rtp import is_rtcp

MAX_STREAMS = 32
"""In one call. A client has one or two, and now and then begins another one. Overflow policy: new ones are dropped."""
_RTP_SSRC, _RTCP_SSRC = slice(8, 12), slice(4, 8)


class SrtpStreams:
    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def admits(self, packet: bytes) -> bool:
        """An encrypted one, whoever sent it: whether it may be given to the library."""
        return len(self._known) < MAX_STREAMS or _ssrc(packet) in self._known

    def note(self, packet: bytes) -> None:
        """A decrypted one: only the client can have made it."""
        self._known.add(_ssrc(packet))


def _ssrc(packet: bytes) -> bytes:
    return packet[_RTCP_SSRC if is_rtcp(packet) else _RTP_SSRC]
