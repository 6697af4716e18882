"""How much of a session is kept, in every store; and which ids and writes a store takes at all."""

import re

from sessions.store.records import SessionRecord, Write

OFFERED_TOKENS = 16
"""Overflow policy `latest`: only a client that has come back so often without an answer knows the oldest."""
JOURNAL_EVENTS = 1000
JOURNAL_BYTES = 1 << 20
JOURNAL_WINDOW_S = 60
"""Overflow policy of all three: the oldest go, and `missed` says that it is not complete."""
INPUT_BYTES = 4 << 20
"""Since the last snapshot: 87 s of 24 kHz PCM. Overflow policy `refuse`: who writes takes a snapshot first."""
MOST_RESULTS = 256
RESULT_BYTES = 1 << 20
RESULT_WINDOW_S = 60
"""Overflow policy of all three: the oldest go."""
LONGEST_EVENT_ID = 512

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def checked_id(session_id: str) -> str:
    """Raises ValueError for one that could leave its slot, or its key."""
    if not _ID.fullmatch(session_id):
        raise ValueError(f"session id: expected 1 to 64 of A-Z a-z 0-9 _ -, got {session_id[:80]!r}")
    return session_id


def check_record(record: SessionRecord) -> None:
    """Raises ValueError."""
    checked_id(record.session_id)
    if "\0" in record.tenant:
        raise ValueError(f"tenant: expected a name without NUL, got {record.tenant[:80]!r}")


def check_write(write: Write) -> None:
    """Raises ValueError."""
    numbers = [entry.seq for entry in write.events]
    if any(later <= earlier for earlier, later in zip([0, *numbers], numbers, strict=False)):
        raise ValueError(f"events: expected `seq` that rises from 1, got {numbers[:20]}")
    for event_id in write.results:
        if len(event_id) > LONGEST_EVENT_ID:
            raise ValueError(f"results: expected an event id of at most {LONGEST_EVENT_ID} characters, got {len(event_id)}")


class InputsFull(ValueError):
    """Nothing of the write was written."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id!r}: expected at most {INPUT_BYTES} bytes of inputs since the last snapshot, got more; "
            "write a snapshot with them or before them"
        )
