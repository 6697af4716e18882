"""What the media worker's failures mean to a REST client."""

from collections.abc import Generator
from contextlib import contextmanager

from realtime.errors import RETRY_AFTER_S, SERVER, Refusal
from realtime.media.formats import READABLE
from realtime.media.job import MediaFailed
from realtime.media.messages import FailureKind


@contextmanager
def media_faults(field: str) -> Generator[None]:
    """Inside, a MediaFailed becomes a Refusal; `field` names the upload, or the format of what is encoded."""
    try:
        yield
    except MediaFailed as failed:
        raise _refusal(failed, field) from failed


def _refusal(failed: MediaFailed, field: str) -> Refusal:
    match failed.kind:
        case FailureKind.INVALID:
            return Refusal(f"{field}: expected audio ({READABLE}), got {failed.message}", code="invalid_audio", field=field)
        case FailureKind.BUSY | FailureKind.LOST:
            return Refusal(failed.message, status=503, type=SERVER, code=failed.kind.value, retry_after_s=RETRY_AFTER_S)
        case _:
            return Refusal(f"{field}: {failed.message}", status=500, type=SERVER, code="media_failed", field=field)
