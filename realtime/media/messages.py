"""Everything that the gateway and its media worker say to each other. Frames are those of the engines' control sockets.

The two talk over one socket pair, the worker's end of which is its standard input: when it closes, the worker ends.
Both directions of a job are bounded by the windows of its kind: so many pieces of input may be sent that are not Taken yet,
so many pieces of output that are not Granted yet. Whoever has used up the window waits (policy: block).
"""

from enum import StrEnum
from typing import ClassVar, NamedTuple, TypeAlias

import msgspec

from realtime.media.call_codecs import CallCodec, Voice
from realtime.media.formats import AudioFormat

PIECE_BYTES = 256 << 10
"""Larger writes are cut into pieces of this size."""


class Windows(NamedTuple):
    """How many pieces may be on their way."""

    input: int
    output: int


FILE_WINDOWS = Windows(8, 16)
SPEAK_WINDOWS = Windows(16, 250)
"""Pieces out are packets: a long clause is encoded at once, 5 s ahead of whoever takes the packets."""
LISTEN_WINDOWS = Windows(50, 50)
"""A second of packets: a short stall of the worker holds no microphone back."""


class Encode(msgspec.Struct, frozen=True, tag="encode"):
    """Open a job: PCM16 mono at `rate` Hz comes in, bytes of `format` go out as soon as there are any."""

    windows: ClassVar[Windows] = FILE_WINDOWS
    job: int
    format: AudioFormat
    rate: int


class Decode(msgspec.Struct, frozen=True, tag="decode"):
    """Open a job: an uploaded file comes in, and when it is complete PCM16 mono at `rate` Hz goes out."""

    windows: ClassVar[Windows] = FILE_WINDOWS
    job: int
    rate: int


class Speak(msgspec.Struct, frozen=True, tag="speak"):
    """Open a job: PCM16 mono at 24 kHz comes in, packets of 20 ms go out, each as soon as it is full."""

    windows: ClassVar[Windows] = SPEAK_WINDOWS
    job: int
    voice: Voice


class Listen(msgspec.Struct, frozen=True, tag="listen"):
    """Open a job: packets come in, and Lost and Silent in their places; PCM16 mono at 24 kHz goes out at once."""

    windows: ClassVar[Windows] = LISTEN_WINDOWS
    job: int
    codec: CallCodec


Order: TypeAlias = Encode | Decode | Speak | Listen


class Data(msgspec.Struct, frozen=True, tag="data"):
    job: int
    data: bytes


class Lost(msgspec.Struct, frozen=True, tag="lost"):
    """A piece of input of Listen: `samples` at 24 kHz did not come. The next packet may bring a copy of the last of them."""

    job: int
    samples: int


class Silent(msgspec.Struct, frozen=True, tag="silent"):
    """A piece of input of Listen: `samples` at 24 kHz in which nothing was said."""

    job: int
    samples: int


class Finish(msgspec.Struct, frozen=True, tag="finish"):
    """The input is complete."""

    job: int


class Grant(msgspec.Struct, frozen=True, tag="grant"):
    """The gateway has passed on one piece of output."""

    job: int


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop the job. Answered by Failed, unless the job has just ended by itself."""

    job: int


ToWorker: TypeAlias = Order | Data | Lost | Silent | Finish | Grant | Cancel


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    pid: int


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """Sent every HEARTBEAT_S, so that a worker that hangs as a whole is noticed."""


class Taken(msgspec.Struct, frozen=True, tag="taken"):
    """The job has begun to work on one piece of input."""

    job: int


class Output(msgspec.Struct, frozen=True, tag="output"):
    job: int
    data: bytes


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """All output is out."""

    job: int


class FailureKind(StrEnum):
    INVALID = "invalid"
    """The input's own fault."""
    BUSY = "busy"
    """Too many jobs at once."""
    CANCELLED = "cancelled"
    STUCK = "stuck"
    """The codec has not come back for BUSY_LIMIT_S."""
    BROKEN = "broken"
    """The codec raised what it never should."""
    LOST = "lost"
    """The worker died, or does not start."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The job has given up and holds nothing more."""

    job: int
    kind: FailureKind
    message: str


ToGateway: TypeAlias = Ready | Alive | Taken | Output | Ended | Failed

HEARTBEAT_S = 1.0
BUSY_LIMIT_S = 20.0

encoder = msgspec.msgpack.Encoder()
to_worker_decoder = msgspec.msgpack.Decoder(ToWorker)
to_gateway_decoder = msgspec.msgpack.Decoder(ToGateway)
