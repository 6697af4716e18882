"""The messages of a chat as the language model takes them: text, with at most one question still to be heard."""

import binascii

import msgspec

from engines.messages.to_worker import ServiceClass
from engines.parameters import Message
from realtime.context import AppContext
from realtime.errors import Invalid, shown
from realtime.rest.chat_body import ChatMessage, ContentPart
from realtime.rest.media_faults import media_faults
from realtime.rest.recognition import EAR_RATE_HZ, recognise
from realtime.rest.stopwatch import Stopwatch

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


class Recording(msgspec.Struct, frozen=True):
    """An uploaded audio file; `field` is where it stands in the request."""

    field: str
    data: bytes


class Conversation(msgspec.Struct, frozen=True):
    """`question` is the recording that the last message ends with: recognition feeds it to the model as its last message."""

    messages: tuple[Message, ...]
    question: Recording | None


class Line(msgspec.Struct, frozen=True):
    """A message of the request, checked."""

    message: ChatMessage
    parts: tuple[str | Recording, ...]


async def conversation(context: AppContext, messages: tuple[ChatMessage, ...], watch: Stopwatch) -> Conversation:
    """Recordings in the middle are transcribed first. Raises Refusal (400) that names the field."""
    lines = [_line(message, f"messages[{index}]") for index, message in enumerate(messages)]
    last = lines[-1].parts[-1]
    question = last if isinstance(last, Recording) else None
    if question is not None:
        lines[-1] = Line(lines[-1].message, lines[-1].parts[:-1])
    written = [await _written(context, line, watch) for line in lines if line.parts]
    return Conversation(tuple(written), question)


def _line(message: ChatMessage, field: str) -> Line:
    if message.role not in ROLES:
        raise Invalid(f"{field}.role", f"one of {', '.join(ROLES)}", message.role)
    match message.content:
        case str(text):
            return Line(message, (text,))
        case None | ():
            raise Invalid(f"{field}.content", "text or content parts", message.content)
        case parts:
            names = [f"{field}.content[{index}]" for index in range(len(parts))]
            return Line(message, tuple(_part(part, name, message.role) for part, name in zip(parts, names, strict=True)))


def _part(part: ContentPart, field: str, role: str) -> str | Recording:
    match part.type:
        case "text":
            if part.text is None:
                raise Invalid(f"{field}.text", "a text", None)
            return part.text
        case "input_audio" if role == "user":
            return _recording(part, f"{field}.input_audio")
        case _:
            raise Invalid(f"{field}.type", "'text', or 'input_audio' of the user", part.type)


def _recording(part: ContentPart, field: str) -> Recording:
    if part.input_audio is None:
        raise Invalid(field, "data and format", None)
    if part.input_audio.format not in ("wav", "mp3"):
        raise Invalid(f"{field}.format", "'wav' or 'mp3'", part.input_audio.format)
    try:
        return Recording(f"{field}.data", binascii.a2b_base64(part.input_audio.data, strict_mode=True))
    except ValueError as wrong:
        got = shown(part.input_audio.data, limit=40)
        raise Invalid(f"{field}.data", f"base64 ({wrong})", got, code="invalid_base64") from wrong


async def _written(context: AppContext, line: Line, watch: Stopwatch) -> Message:
    texts = [part if isinstance(part, str) else await _transcript(context, part, watch) for part in line.parts]
    return msgspec.convert({"role": ROLES[line.message.role], "content": "\n".join(texts)}, Message)


async def _transcript(context: AppContext, recording: Recording, watch: Stopwatch) -> str:
    with media_faults(recording.field):
        async with context.media.decode(EAR_RATE_HZ) as upload:
            await upload.write(recording.data)
            upload.finish()
            return (await recognise(context, upload, "en", ServiceClass.INTERACTIVE, watch)).text
