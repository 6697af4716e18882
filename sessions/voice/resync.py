"""What a transport is told that comes back to a session: the conversation as it is, in place of the events that it has missed."""

from sessions.voice import events

TOLD = (
    events.Opened,
    events.Expiring,
    events.Configured,
    events.SpeechStarted,
    events.SpeechStopped,
    events.IdleTimeout,
    events.AudioCommitted,
    events.AudioCleared,
    events.ItemAdded,
    events.ItemDone,
    events.ItemDeleted,
    events.ItemRetrieved,
    events.ItemTruncated,
    events.ResponseCreated,
    events.OutputItemAdded,
    events.PartAdded,
    events.TextDelta,
)
"""Configuration, items and the text of the live answer stand in `events.Reopened`. Sound and what ends something do not."""


def told(event: events.Event) -> bool:
    return isinstance(event, TOLD)
