"""What a realtime session begins with, and what its request may ask for."""

import re
from typing import TypeAlias

from aiohttp import web

from realtime.context import AppContext
from realtime.errors import SERVER, Invalid, Refusal, UnknownModel
from realtime.guard import PRINCIPAL, check_allowed
from realtime.openai_realtime.secret_session import fixed_by
from realtime.openai_realtime.session_config import WireSession, apply
from realtime.turned_away import turned_away, whole_seconds
from sessions.admission.admission import NotAdmitted
from sessions.admission.seats import VOICE
from sessions.retention.resume_tokens import HeldElsewhere, ResumeRefused, SessionLost, Stopped, Superseded
from sessions.store.interface import StoreDown
from sessions.voice.config import VoiceConfig

_NUMBER = re.compile(r"[0-9]{1,15}")


def default_session(context: AppContext) -> WireSession:
    catalogue = context.catalogue
    config = VoiceConfig(
        model=catalogue.pipeline,
        instructions=context.voice_settings.instructions,
        voice=catalogue.default_voice,
        modality="audio" if catalogue.voices else "text",
    )
    return WireSession(config)


def beginning(request: web.Request, context: AppContext) -> WireSession:
    """With what the client secret fixes, where the request bears one. Raises Refusal."""
    return apply(default_session(context), fixed_by(request[PRINCIPAL]), context.catalogue)


def check_query(request: web.Request, context: AppContext) -> None:
    """Raises Refusal for what another kind of session would need, and for what the key does not allow. Other parameters are hints
    of stock clients, and so is the model where a client secret names one."""
    served = context.catalogue.pipeline
    model = fixed_by(request[PRINCIPAL]).model or request.query.get("model", served)
    if model != served:
        raise UnknownModel(model, (served,), "realtime sessions")
    check_allowed(request, VOICE, model)
    if request.query.get("intent", "conversation") != "conversation":
        raise Invalid("intent", "conversation", request.query["intent"], code="unsupported")
    if "call_id" in request.query:
        message = "call_id: expected none, got one; a session has one connection here"
        raise Refusal(message, code="unsupported", field="call_id")


NotOpened: TypeAlias = NotAdmitted | StoreDown | ResumeRefused | HeldElsewhere | Superseded
"""Why there is no session for a client: no seat, no store, or none that it could come back to, or not yet, or not any more."""


def not_opened(why: NotOpened) -> Refusal:
    match why:
        case SessionLost():
            return Refusal(f"resume: {why}", status=404, code="session_lost", field="resume")
        case Stopped():
            return Refusal(f"resume: {why}", status=404, code="session_closed", field="resume")
        case ResumeRefused():
            return Refusal(f"resume: {why}", status=404, code="session_not_found", field="resume")
        case HeldElsewhere():
            after_s = whole_seconds(why.retry_after_s)
            return Refusal(f"resume: {why}", status=503, code="session_held", field="resume", type=SERVER, retry_after_s=after_s)
        case Superseded():
            return Refusal(f"resume: {why}", status=409, code="superseded", field="resume")
        case NotAdmitted() | StoreDown():
            return turned_away(why)


def last_seq(request: web.Request) -> int | None:
    """`?last_seq=`: the number of the last event that the client has. Raises Refusal."""
    given = request.query.get("last_seq")
    if given is None:
        return None
    if _NUMBER.fullmatch(given) is None:
        raise Invalid("last_seq", "the number of an event", given)
    return int(given)
