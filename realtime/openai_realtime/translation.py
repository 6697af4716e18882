"""From what a session tells (`sessions.events`) to what stands on the wire."""

import msgspec

from realtime.errors import ErrorBody
from realtime.openai_realtime import server_events as wire
from realtime.openai_realtime.server_events import Object, ServerEvent
from realtime.openai_realtime.session_config import shown_format
from realtime.shown_timing import shown_timing
from sessions.voice import events
from sessions.voice.items import InputAudio, InputText, Item, OutputAudio, OutputText, Part


def translate(event: events.Event, conversation_id: str) -> tuple[ServerEvent, ...]:
    """The wire events of one session event, in order. What shows the session itself is the script's to tell."""
    match event:
        case events.Opened() | events.Reopened() | events.Resumed() | events.Configured() | events.Expiring():
            return ()
        case events.Recognised() | events.AnswerForgone() | events.Overtaken():
            return ()
        case events.SessionError(code, message):
            return (wire.Error(error=ErrorBody(message=message, type="server_error", code=code)),)
        case (
            events.SpeechStarted()
            | events.SpeechStopped()
            | events.IdleTimeout()
            | events.AudioCommitted()
            | events.AudioCleared()
            | events.TranscriptCompleted()
            | events.TranscriptFailed()
        ):
            return (_of_input(event),)
        case events.ItemAdded() | events.ItemDone() | events.ItemDeleted() | events.ItemRetrieved() | events.ItemTruncated():
            return (_of_conversation(event),)
        case events.PlaybackCleared(response_id):
            return (wire.PlaybackCleared(response_id=response_id),)
        case events.ResponseCreated(response):
            return (wire.ResponseCreated(response=shown_response(response, conversation_id)), wire.RateLimitsUpdated())
        case events.ResponseDone(response):
            return (wire.ResponseDone(response=shown_response(response, conversation_id)),)
        case _:
            return (_of_response(event),)


def _of_input(
    event: events.SpeechStarted
    | events.SpeechStopped
    | events.IdleTimeout
    | events.AudioCommitted
    | events.AudioCleared
    | events.TranscriptCompleted
    | events.TranscriptFailed,
) -> ServerEvent:
    match event:
        case events.SpeechStarted(item_id, audio_start_ms):
            return wire.SpeechStarted(item_id=item_id, audio_start_ms=audio_start_ms)
        case events.SpeechStopped(item_id, audio_end_ms):
            return wire.SpeechStopped(item_id=item_id, audio_end_ms=audio_end_ms)
        case events.IdleTimeout(item_id, start_ms, end_ms):
            return wire.TimeoutTriggered(item_id=item_id, audio_start_ms=start_ms, audio_end_ms=end_ms)
        case events.AudioCommitted(item_id, previous):
            return wire.Committed(item_id=item_id, previous_item_id=previous)
        case events.AudioCleared():
            return wire.Cleared()
        case events.TranscriptCompleted(item_id, index, transcript, seconds):
            usage: Object = {"type": "duration", "seconds": seconds}
            return wire.TranscriptionCompleted(item_id=item_id, content_index=index, transcript=transcript, usage=usage)
        case events.TranscriptFailed(item_id, index, message):
            error = ErrorBody(message=message, type="server_error", code="transcription_failed")
            return wire.TranscriptionFailed(item_id=item_id, content_index=index, error=error)


def _of_conversation(
    event: events.ItemAdded | events.ItemDone | events.ItemDeleted | events.ItemRetrieved | events.ItemTruncated,
) -> ServerEvent:
    match event:
        case events.ItemAdded(item, previous):
            return wire.ItemAdded(item=shown_item(item), previous_item_id=previous)
        case events.ItemDone(item, previous):
            return wire.ItemDone(item=shown_item(item), previous_item_id=previous)
        case events.ItemDeleted(item_id):
            return wire.ItemDeleted(item_id=item_id)
        case events.ItemRetrieved(item):
            return wire.ItemRetrieved(item=shown_item(item))
        case events.ItemTruncated(item_id, index, audio_end_ms):
            return wire.ItemTruncated(item_id=item_id, content_index=index, audio_end_ms=audio_end_ms)


def _of_response(
    event: events.OutputItemAdded
    | events.OutputItemDone
    | events.PartAdded
    | events.PartDone
    | events.TextDelta
    | events.TextDone
    | events.AudioDelta
    | events.AudioDone,
) -> ServerEvent:
    match event:
        case events.OutputItemAdded(response_id, item):
            return wire.OutputItemAdded(response_id=response_id, item=shown_item(item))
        case events.OutputItemDone(response_id, item):
            return wire.OutputItemDone(response_id=response_id, item=shown_item(item))
        case events.PartAdded(response_id, item_id, part):
            return wire.PartAdded(response_id=response_id, item_id=item_id, part=_shown_answer_part(part))
        case events.PartDone(response_id, item_id, part):
            return wire.PartDone(response_id=response_id, item_id=item_id, part=_shown_answer_part(part))
        case events.TextDelta(response_id, item_id, text, spoken):
            kind = wire.TranscriptDelta if spoken else wire.TextDelta
            return kind(response_id=response_id, item_id=item_id, delta=text)
        case events.TextDone(response_id, item_id, text, True):
            return wire.TranscriptDone(response_id=response_id, item_id=item_id, transcript=text)
        case events.TextDone(response_id, item_id, text):
            return wire.TextDone(response_id=response_id, item_id=item_id, text=text)
        case events.AudioDelta(response_id, item_id, pcm, pts_ms):
            return wire.AudioDelta(response_id=response_id, item_id=item_id, delta=pcm, pts_ms=pts_ms)
        case events.AudioDone(response_id, item_id):
            return wire.AudioDone(response_id=response_id, item_id=item_id)


def shown_item(item: Item) -> Object:
    return {
        "id": item.id,
        "object": "realtime.item",
        "type": "message",
        "status": item.status,
        "role": item.role,
        "content": [_shown_part(part) for part in item.parts],
    }


def _shown_part(part: Part) -> Object:
    match part:
        case InputText(text):
            return {"type": "input_text", "text": text}
        case InputAudio(transcript, _):
            return {"type": "input_audio", "transcript": transcript}
        case OutputText(text):
            return {"type": "output_text", "text": text}
        case OutputAudio(transcript, _):
            return {"type": "output_audio", "transcript": transcript}


def _shown_answer_part(part: Part) -> Object:
    """Content parts of a response have names of their own on the wire."""
    match part:
        case OutputAudio(transcript, _) | InputAudio(transcript, _):
            return {"type": "audio", "transcript": transcript or ""}
        case OutputText(text) | InputText(text):
            return {"type": "text", "text": text}


def shown_response(response: events.Response, conversation_id: str) -> Object:
    """`metrics` is extra: where the time of the answer went, in milliseconds."""
    shown: Object = {
        "id": response.id,
        "object": "realtime.response",
        "status": response.status,
        "status_details": _status_details(response),
        "output": [shown_item(item) for item in response.output],
        "conversation_id": conversation_id if response.conversation == "auto" else None,
        "output_modalities": [response.modality],
        "max_output_tokens": "inf" if response.max_output_tokens is None else response.max_output_tokens,
        "audio": {"output": {"format": shown_format(response.sound_format), "voice": response.voice}},
        "usage": None if response.usage is None else _shown_usage(response.usage),
        "metadata": response.metadata or None,
    }
    if response.timing is not None:
        shown["metrics"] = msgspec.to_builtins(shown_timing(response.timing))
    return shown


def _status_details(response: events.Response) -> Object | None:
    match response.status:
        case "in_progress" | "completed":
            return None
        case "cancelled" | "incomplete":
            return {"type": response.status, "reason": response.reason or None}
        case "failed":
            error: Object = {"type": "server_error", "code": response.reason or "failed", "message": response.message}
            return {"type": "failed", "error": error}


def _shown_usage(usage: events.Usage) -> Object:
    """Audio is never made of tokens here, so audio tokens are 0 and the extra fields tell its length."""
    return {
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "input_token_details": {
            "text_tokens": usage.input_tokens,
            "audio_tokens": 0,
            "image_tokens": 0,
            "cached_tokens": usage.cached_tokens,
            "cached_tokens_details": {"text_tokens": usage.cached_tokens, "audio_tokens": 0, "image_tokens": 0},
        },
        "output_token_details": {"text_tokens": usage.output_tokens, "audio_tokens": 0},
        "input_audio_ms": usage.input_audio_ms,
        "output_audio_ms": usage.output_audio_ms,
    }
