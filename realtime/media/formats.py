"""The audio formats that answers may have. All are mono; `pcm` is signed 16-bit little endian without a header."""

from typing import Literal, TypeAlias

AudioFormat: TypeAlias = Literal["mp3", "wav", "pcm", "opus", "flac"]

FORMATS: tuple[AudioFormat, ...] = ("mp3", "wav", "pcm", "opus", "flac")

CONTENT_TYPES: dict[AudioFormat, str] = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
    "opus": "audio/ogg",
    "flac": "audio/flac",
}

READABLE = "wav, mp3, flac, ogg, opus, m4a, mp4, webm, aac or aiff"
"""What uploads may be, for error messages."""
