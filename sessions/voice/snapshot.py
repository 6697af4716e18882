"""A conversation at rest."""

import msgspec

from sessions.retention.snapshots import NotRestorable
from sessions.voice.config import VoiceConfig
from sessions.voice.conversation import Entry
from sessions.voice.owed import Owed
from sessions.voice.unfinished import Unfinished


class VoiceSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """No sound: not what the user was saying, nor what has not been played of an answer. `wire` is the edge's own; `unfinished`
    answers had begun, what is `owed` has not; `spoken` is the id of the newest answer with sound."""

    config: VoiceConfig
    entries: tuple[Entry, ...]
    epoch: int
    unfinished: tuple[Unfinished, ...] = ()
    spoken: str | None = None
    owed: Owed = msgspec.field(default_factory=Owed)
    wire: bytes = b""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(VoiceSnapshot)


def pack(snapshot: VoiceSnapshot) -> bytes:
    return _encoder.encode(snapshot)


def unpack(content: bytes) -> VoiceSnapshot:
    """Raises NotRestorable."""
    try:
        return _decoder.decode(content)
    except msgspec.MsgspecError as broken:
        raise NotRestorable(f"the snapshot of a conversation is broken: {broken}") from broken
