"""From the bytes of a message to what the session is to do."""

import msgspec

from realtime.catalogue import Catalogue
from realtime.errors import Refusal
from realtime.openai_realtime.client_events import Malformed, SessionUpdate, decode
from realtime.openai_realtime.to_command import to_command
from sessions.voice.commands import Command


class Understood(msgspec.Struct, frozen=True):
    """`event_id` is the client's own, for errors to come. A session.update needs the present session to become a command."""

    event_id: str | None
    wish: SessionUpdate | Command


def understand(message: bytes, catalogue: Catalogue, max_append_bytes: int) -> Understood:
    """Raises Malformed."""
    event = decode(message)
    if isinstance(event, SessionUpdate):
        return Understood(event.event_id, event)
    try:
        return Understood(event.event_id, to_command(event, catalogue, max_append_bytes))
    except Refusal as refusal:
        raise Malformed(refusal, event.event_id) from refusal
