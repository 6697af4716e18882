"""libopus through ctypes, which releases the GIL. Runs in the media worker: one object, one thread.

A codec's state lies in memory of Python's, so that nothing needs to be destroyed. Names and codes are those of opus.h.
"""

import ctypes
import ctypes.util
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from realtime.media.call_codecs import BIT_RATE
from realtime.media.opus_frames import BYTES_PER_SAMPLE, FRAME_MS, MAX_PACKET_MS, RATE_HZ

MAX_PACKET_BYTES = 1275
"""Of one frame."""
COMPLEXITY = 5

_OPUS_OK = 0
_OPUS_APPLICATION_VOIP = 2048
_SET_BITRATE = 4002
_SET_COMPLEXITY = 4010
_SET_INBAND_FEC = 4012
_SET_PACKET_LOSS_PERCENT = 4014
_GET_LOOKAHEAD = 4027


class NotOpus(ValueError):
    """The packet cannot be decoded. The decoder can go on with the next one."""


class OpusError(RuntimeError):
    """libopus is not there, or refuses what it never should."""


class OpusEncoder:
    """Mono, tuned for speech, with in-band FEC when loss is expected. Raises OpusError.

    The codec looks `lookahead` samples ahead: a decoder gives each sample back that much later (6.5 ms).
    """

    def __init__(self, rate: int = RATE_HZ, bit_rate: int = BIT_RATE, expected_loss_percent: int = 10) -> None:
        self._library = _library()
        self._state = ctypes.create_string_buffer(self._library.opus_encoder_get_size(1))
        _checked(self._library.opus_encoder_init(self._state, rate, 1, _OPUS_APPLICATION_VOIP))
        self.frame_samples = rate * FRAME_MS // 1000
        self._packet = ctypes.create_string_buffer(MAX_PACKET_BYTES)
        self._set(_SET_BITRATE, bit_rate)
        self._set(_SET_COMPLEXITY, COMPLEXITY)
        self._set(_SET_INBAND_FEC, 1)
        self._set(_SET_PACKET_LOSS_PERCENT, expected_loss_percent)

    @property
    def lookahead(self) -> int:
        """In samples."""
        samples = ctypes.c_int32()
        _checked(self._library.opus_encoder_ctl(self._state, _GET_LOOKAHEAD, ctypes.byref(samples)))
        return samples.value

    def encode(self, pcm: bytes) -> bytes:
        """One packet of PCM16, exactly `frame_samples` long. Raises ValueError."""
        expected = self.frame_samples * BYTES_PER_SAMPLE
        if len(pcm) != expected:
            raise ValueError(f"pcm: expected {expected} bytes, a frame of {FRAME_MS} ms; got {len(pcm)}")
        size = _checked(self._library.opus_encode(self._state, pcm, self.frame_samples, self._packet, MAX_PACKET_BYTES))
        return ctypes.string_at(self._packet, size)

    def _set(self, what: int, value: int) -> None:
        _checked(self._library.opus_encoder_ctl(self._state, what, ctypes.c_int32(value)))


class OpusDecoder:
    """Gives PCM16 mono at `rate` Hz, whatever the packets hold: stereo is mixed, other rates are converted. Raises OpusError."""

    def __init__(self, rate: int = RATE_HZ) -> None:
        self._library = _library()
        self._state = ctypes.create_string_buffer(self._library.opus_decoder_get_size(1))
        _checked(self._library.opus_decoder_init(self._state, rate, 1))
        self._grain = rate // 400
        self._max_samples = rate * MAX_PACKET_MS // 1000
        self._pcm = ctypes.create_string_buffer(self._max_samples * BYTES_PER_SAMPLE)

    def decode(self, packet: bytes) -> bytes:
        """The sound of one packet: 2.5 to 120 ms. Raises NotOpus."""
        if not packet:
            raise NotOpus("an empty packet")
        return self._decode(packet, self._max_samples, from_next=False)

    def conceal(self, samples: int) -> bytes:
        """A guess at sound that was lost: a multiple of 2.5 ms, at most 120 ms. Raises ValueError."""
        return self._decode(None, self._lost(samples), from_next=False)

    def decode_fec(self, packet: bytes, samples: int) -> bytes:
        """The sound that was lost before `packet`, from the copy in it where there is one, else a guess; then decode it too.

        Raises NotOpus, and ValueError for `samples` as `conceal` does.
        """
        if not packet:
            raise NotOpus("an empty packet")
        return self._decode(packet, self._lost(samples), from_next=True)

    def _lost(self, samples: int) -> int:
        if samples % self._grain or not 0 < samples <= self._max_samples:
            raise ValueError(f"samples: expected a multiple of {self._grain} up to {self._max_samples}, got {samples}")
        return samples

    def _decode(self, packet: bytes | None, samples: int, *, from_next: bool) -> bytes:
        size = 0 if packet is None else len(packet)
        decoded: int = self._library.opus_decode(self._state, packet, size, self._pcm, samples, from_next)
        if packet is not None and decoded < _OPUS_OK:
            raise NotOpus(f"{size} bytes that are no Opus packet: libopus answers with its error {decoded}")
        return ctypes.string_at(self._pcm, _checked(decoded) * BYTES_PER_SAMPLE)


@cache
def _library() -> ctypes.CDLL:
    path = library_path()
    try:
        library = ctypes.CDLL(path)
    except OSError as unreadable:
        raise OpusError(f"{path} cannot be loaded: {unreadable}") from unreadable
    pointer, size, code = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int
    bytes_or_null = ctypes.c_char_p
    library.opus_encoder_get_size.argtypes = [code]
    library.opus_encoder_init.argtypes = [pointer, size, code, code]
    library.opus_encoder_ctl.argtypes = [pointer, code]  # and one more, by the request
    library.opus_encode.argtypes = [pointer, bytes_or_null, code, pointer, size]
    library.opus_encode.restype = size
    library.opus_decoder_get_size.argtypes = [code]
    library.opus_decoder_init.argtypes = [pointer, size, code]
    library.opus_decode.argtypes = [pointer, bytes_or_null, size, pointer, code, code]
    return library


def library_path() -> str:
    """The library that PyAV's wheel brings, else the system's. Raises OpusError."""
    if (av := find_spec("av")) is not None and av.origin is not None:
        beside = Path(av.origin).parents[1] / "av.libs"
        if bundled := sorted(beside.glob("libopus-*.so*")):
            return str(bundled[0])
    if (installed := ctypes.util.find_library("opus")) is not None:
        return installed
    raise OpusError("libopus is neither beside PyAV nor on this system; install the Debian package libopus0")


def _checked(code: int) -> int:
    if code < _OPUS_OK:
        raise OpusError(f"libopus answers with its error {code}")
    return code
