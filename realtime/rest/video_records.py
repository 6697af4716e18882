"""What the video endpoints answer, in OpenAI's shape; `seed`, `frames` and `fps` are ours."""

from collections.abc import Sequence

import msgspec

from engines.messages.to_gateway import ErrorKind
from engines.requests import RequestFailed
from realtime.errors import refusal
from realtime.rest.video_body import REFERENCE
from sessions.jobs.film import FilmMade, JobFault, outcome_of, wish_of
from sessions.store.job_records import JobSeen

WHOLE = 100


class VideoError(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    message: str
    param: str | None = None


class Video(msgspec.Struct, frozen=True, kw_only=True):
    """`size` and `seconds` as they were asked for, until it is made; `frames` None: not made yet."""

    id: str
    object: str = "video"
    model: str
    status: str
    progress: int
    created_at: int
    completed_at: int | None
    expires_at: int | None
    prompt: str
    size: str
    seconds: str
    seed: int
    fps: int
    frames: int | None
    error: VideoError | None
    remixed_from_video_id: None = None


class VideoPage(msgspec.Struct, frozen=True, kw_only=True):
    object: str = "list"
    data: Sequence[Video]
    first_id: str | None
    last_id: str | None
    has_more: bool


class VideoDeleted(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    object: str = "video.deleted"
    deleted: bool = True


def video(seen: JobSeen) -> Video:
    wish, outcome = wish_of(seen), outcome_of(seen)
    made = outcome if isinstance(outcome, FilmMade) else None
    return Video(
        id=seen.job_id,
        model=wish.model,
        status=seen.state.value,
        progress=WHOLE if made is not None else seen.progress,
        created_at=int(seen.made_at),
        completed_at=int(seen.ended_at) if made is not None and seen.ended_at is not None else None,
        expires_at=None if seen.kept_until is None else int(seen.kept_until),
        prompt=wish.prompt,
        size=wish.size if made is None else f"{made.width}x{made.height}",
        seconds=wish.seconds,
        seed=wish.picture.seed,
        fps=wish.frames_per_s,
        frames=None if made is None else made.frames,
        error=_error(outcome) if isinstance(outcome, JobFault) else None,
    )


def page(found: Sequence[JobSeen], *, has_more: bool) -> VideoPage:
    videos = [video(seen) for seen in found]
    first, last = (videos[0].id, videos[-1].id) if videos else (None, None)
    return VideoPage(data=videos, first_id=first, last_id=last, has_more=has_more)


def _error(fault: JobFault) -> VideoError:
    """An engine's refusal is told as in any other answer, but that the picture has another name here."""
    if not fault.stage:
        return VideoError(code=fault.code, message=fault.message)
    told = refusal(RequestFailed(ErrorKind(fault.code), fault.stage, fault.message)).body
    if told.param != "image":
        return VideoError(code=fault.code, message=told.message, param=told.param)
    return VideoError(code=fault.code, message=REFERENCE + told.message.removeprefix("image"), param=REFERENCE)
