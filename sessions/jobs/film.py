"""What a film's job is: the wish, and what came of it, as they stand in the store."""

from typing import TypeAlias

import msgspec

from engines.parameters import Development, Picture
from engines.requests import RequestFailed
from sessions.store.job_records import JobSeen


class FilmWish(msgspec.Struct, frozen=True, kw_only=True):
    """`size` and `seconds` as they were asked for."""

    model: str
    prompt: str
    picture: Picture
    frames_per_s: int
    size: str
    seconds: str

    @property
    def development(self) -> Development:
        return Development(format="mp4", frames_per_s=self.frames_per_s)


class FilmMade(msgspec.Struct, frozen=True, kw_only=True, tag="made"):
    """`file` lies on `host`. `width` and `height` in pixels."""

    file: str
    host: str
    size_bytes: int
    frames: int
    width: int
    height: int


class JobFault(msgspec.Struct, frozen=True, kw_only=True, tag="fault"):
    """`stage`: of the engine that has failed, with its ErrorKind as the code; empty: it was no engine."""

    code: str
    message: str
    stage: str = ""

    @classmethod
    def of(cls, failed: RequestFailed) -> "JobFault":
        return cls(code=failed.kind.value, message=failed.message, stage=failed.stage)


Outcome: TypeAlias = FilmMade | JobFault

NODE_LOST = JobFault(code="node_lost", message="the server that worked on it has died; ask for it again")
STOPPED = JobFault(code="server_stopped", message="the server was stopped before it was done; ask for it again")
DRAINING = JobFault(code="server_draining", message="the server is stopping, and had not begun with it; ask for it again")
INTERNAL = JobFault(code="internal_error", message="the server failed; its log tells how")
NO_ROOM = JobFault(code="storage_full", message="the server has no room for the film; delete some, or ask for it again later")
NOT_WRITTEN = JobFault(code="storage_failed", message="the server could not write the film; its log tells why")

_encoder = msgspec.msgpack.Encoder()
_wishes = msgspec.msgpack.Decoder(FilmWish)
_outcomes: msgspec.msgpack.Decoder[Outcome] = msgspec.msgpack.Decoder(Outcome)


def packed(content: FilmWish | Outcome) -> bytes:
    return _encoder.encode(content)


def wish_of(seen: JobSeen) -> FilmWish:
    return _wishes.decode(seen.wish)


def outcome_of(seen: JobSeen) -> Outcome | None:
    """None: it is not over."""
    if seen.ended_at is None:
        return None
    return _outcomes.decode(seen.outcome) if seen.outcome else NODE_LOST
