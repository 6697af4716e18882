"""How calls cut and count Opus, and what a packet tells undecoded. Without any codec, for the gateway to import."""

FRAME_MS = 20
MAX_PACKET_MS = 120
"""More than one packet may not hold (RFC 6716, 3.2)."""
CLOCK_HZ = 48_000
"""RTP timestamps of Opus count at this rate, whatever the sound inside (RFC 7587, 4.1)."""
TICKS_PER_FRAME = CLOCK_HZ * FRAME_MS // 1000
RATE_HZ = 24_000
"""Of the PCM16 on the other side of the codec."""
SAMPLES_PER_FRAME = RATE_HZ * FRAME_MS // 1000
BYTES_PER_SAMPLE = 2

OPUS_SILENCE = b"\xf8\xff\xfe"
"""A 20 ms mono packet of digital silence: one fullband CELT frame in which only the silence flag is set (RFC 6716, 3.1, 4.3).

As a change of coding mode it fades what sounds and resets the listener's decoder, so a fresh encoder's packets may follow it.
"""
OPUS_PAUSE = b"\xf8"
"""After OPUS_SILENCE: a packet without content. For a while nothing will be sent (RFC 7587, 3.1.3)."""

_MAX_PACKET_TICKS = CLOCK_HZ * MAX_PACKET_MS // 1000
_PAUSE_BYTES = 2


def packet_ticks(packet: bytes) -> int:
    """How long the sound of a packet is, by its header (RFC 6716, 3.1), in units of CLOCK_HZ; 0 for what is no Opus packet."""
    if not packet:
        return 0
    frames = (1, 2, 2, packet[1] & 0x3F if len(packet) > 1 else 0)[packet[0] & 3]
    ticks = frames * _frame_ticks(packet[0] >> 3)
    return ticks if ticks <= _MAX_PACKET_TICKS else 0


def is_pause(packet: bytes) -> bool:
    """A header at most: the sender has nothing to send for a while."""
    return 0 < len(packet) <= _PAUSE_BYTES


def has_copy(packet: bytes) -> bool:
    """Whether it brings a copy of the sound before it (in-band FEC; RFC 6716, 4.2.3 and 4.2.4). Packets of several frames, which
    nobody sends at 60 ms or less, count as without."""
    if len(packet) < 2 or packet[0] & 3 or packet[0] >> 3 >= 16:
        return False
    silk_frames = max(_frame_ticks(packet[0] >> 3) // TICKS_PER_FRAME, 1)
    middle = packet[1] >> (7 - silk_frames) & 1
    side = packet[1] >> (6 - 2 * silk_frames) & 1 if packet[0] & 4 else 0
    return bool(middle or side)


def _frame_ticks(configuration: int) -> int:
    if configuration < 12:
        return (480, 960, 1920, 2880)[configuration & 3]
    if configuration < 16:
        return (480, 960)[configuration & 1]
    return 120 << (configuration & 3)
