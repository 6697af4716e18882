"""Which jobs every store takes at all."""

from sessions.store.job_records import NewJob
from sessions.store.session_limits import checked_id

WISH_BYTES = 512 << 10
"""Overflow policy `refuse`."""


def check_job(job: NewJob) -> None:
    """Raises ValueError."""
    checked_id(job.job_id)
    if "\0" in job.tenant:
        raise ValueError(f"tenant: expected a name without NUL, got {job.tenant[:80]!r}")
    if len(job.wish) > WISH_BYTES:
        raise ValueError(f"wish: expected at most {WISH_BYTES} bytes, got {len(job.wish)}")
