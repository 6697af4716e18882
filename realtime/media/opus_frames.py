"""How calls cut and count Opus. Without any codec, for the gateway to import."""

FRAME_MS = 20
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
