"""An uploaded file of unknown origin in, PCM16 mono out. Runs in the media worker.

FFmpeg sees only bytes in memory: no protocols, no further files, no playlists; only the demuxers and codecs listed here.
"""

import builtins
import io
from collections.abc import Iterator

import av
from av.audio.resampler import AudioResampler
from av.container import InputContainer
from av.error import EOFError, FFmpegError, InvalidDataError, PermissionError, UndefinedError

from realtime.media.formats import READABLE

MAX_FILE_BYTES = 25 << 20
MAX_DURATION_S = 4 * 3600
RATES_HZ = (4_000, 192_000)
MAX_CHANNELS = 16
PIECE_S = 0.5
"""Length of the pieces that go out."""

DEMUXERS = "aac,aiff,au,flac,matroska,webm,mov,mp4,m4a,mp3,ogg,wav,w64"
CODECS = (
    "aac,alac,flac,mp3,mp3float,mp2,mp2float,opus,libopus,vorbis,libvorbis,adpcm_ms,adpcm_ima_wav,"
    "pcm_u8,pcm_s8,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,"
    "pcm_f32le,pcm_f32be,pcm_f64le,pcm_f64be,pcm_alaw,pcm_mulaw"
)
OPEN_OPTIONS = {"format_whitelist": DEMUXERS, "codec_whitelist": CODECS, "protocol_whitelist": ""}
DAMAGED_PACKET = (InvalidDataError, PermissionError, UndefinedError)
"""What decoders say of one: some answer with -1, which is the number of PermissionError, or with any other."""


class NotAudio(ValueError):
    """The upload cannot be decoded; the message completes "expected audio, got …"."""


def decoded(upload: bytes, rate: int) -> Iterator[bytes]:
    """PCM16 mono at `rate` Hz, in pieces of PIECE_S. Raises NotAudio, at once or when the trouble is reached."""
    if not upload:
        raise NotAudio("an empty file")
    try:
        container = av.open(
            io.BytesIO(upload),
            "r",
            container_options=OPEN_OPTIONS,
            metadata_errors="replace",
            io_open=_refuse_open,
        )
    except (FFmpegError, ValueError) as unreadable:
        raise NotAudio(f"{len(upload)} bytes that are not {READABLE}") from unreadable
    with container:
        try:
            yield from _pieces(_samples(container, rate), rate)
        except (FFmpegError, OSError) as impossible:  # damage has many names: FFmpeg answers with whatever error it met
            raise NotAudio("a file that is damaged, or whose header makes no sense") from impossible


def _samples(container: InputContainer, rate: int) -> Iterator[bytes]:
    if not container.streams.audio:
        raise NotAudio("a file without an audio track")
    stream = container.streams.audio[0]
    codec = _codec(stream.codec_context)
    if codec not in CODECS.split(","):
        raise NotAudio(f"the codec {codec}")
    if container.duration is not None and container.duration / av.time_base > MAX_DURATION_S:
        raise NotAudio(f"{container.duration / av.time_base:.0f} s of audio; at most {MAX_DURATION_S} s are allowed")
    yield from _resampled(_frames(container, stream), rate)


def _codec(context: av.CodecContext | None) -> str:
    """PyAV has no context for what FFmpeg has no decoder for, whatever its types say."""
    return context.name if context else "of an unknown name"


def _frames(container: InputContainer, stream: av.AudioStream) -> Iterator[av.AudioFrame]:
    """What can be decoded: a damaged packet is skipped, and a file that breaks off ends there."""
    packets = container.demux(stream)
    while (packet := _next_packet(packets)) is not None:
        try:
            frames = stream.decode(packet)  # pyright: ignore[reportUnknownMemberType]  PyAV leaves Packet open
        except DAMAGED_PACKET:
            continue
        for frame in frames:
            _check(frame)
            yield frame


def _next_packet(packets: "Iterator[av.Packet[av.AudioStream]]") -> "av.Packet[av.AudioStream] | None":
    try:
        return next(packets, None)
    except (InvalidDataError, EOFError):
        return None


def _check(frame: av.AudioFrame) -> None:
    lowest, highest = RATES_HZ
    if not lowest <= frame.sample_rate <= highest:
        raise NotAudio(f"a sample rate of {frame.sample_rate} Hz; {lowest} to {highest} Hz are allowed")
    if frame.layout.nb_channels > MAX_CHANNELS:
        raise NotAudio(f"{frame.layout.nb_channels} channels; at most {MAX_CHANNELS} are allowed")


def _resampled(frames: Iterator[av.AudioFrame], rate: int) -> Iterator[bytes]:
    """The resampler is made for one shape of frames; a chained file may change it on the way."""
    resampler, shape = None, None
    for frame in frames:
        if resampler is None or shape != _shape(frame):
            if resampler is not None:
                yield from map(_bytes, resampler.resample(None))
            resampler, shape = AudioResampler(format="s16", layout="mono", rate=rate), _shape(frame)
        frame.pts = None
        yield from map(_bytes, resampler.resample(frame))
    if resampler is not None:
        yield from map(_bytes, resampler.resample(None))


def _shape(frame: av.AudioFrame) -> tuple[str, str, int]:
    return frame.format.name, frame.layout.name, frame.sample_rate


def _bytes(frame: av.AudioFrame) -> bytes:
    return bytes(frame.planes[0])[: frame.samples * 2]


def _pieces(samples: Iterator[bytes], rate: int) -> Iterator[bytes]:
    piece_bytes = int(rate * PIECE_S) * 2
    limit_bytes = MAX_DURATION_S * rate * 2
    waiting = bytearray()
    total = 0
    for pcm in samples:
        waiting += pcm
        total += len(pcm)
        if total > limit_bytes:
            raise NotAudio(f"more than {MAX_DURATION_S} s of audio, which is what is allowed")
        while len(waiting) >= piece_bytes:
            yield bytes(waiting[:piece_bytes])
            del waiting[:piece_bytes]
    if total == 0:
        raise NotAudio("a file whose audio is missing or damaged")
    if waiting:
        yield bytes(waiting)


def _refuse_open(url: str, flags: int, options: dict[str, str]) -> object:
    raise builtins.PermissionError(f"an upload may not open {url!r}")
