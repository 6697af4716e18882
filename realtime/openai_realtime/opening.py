"""What a realtime session begins with, and what its request may ask for."""

from aiohttp import web

from realtime.context import AppContext
from realtime.errors import Invalid, Refusal, UnknownModel
from realtime.guard import PRINCIPAL, check_allowed
from realtime.openai_realtime.secret_session import fixed_by
from realtime.openai_realtime.session_config import WireSession, apply
from sessions.manager import Kind, ResumeRefused
from sessions.voice_config import VoiceConfig


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
    check_allowed(request, Kind.VOICE, model)
    if request.query.get("intent", "conversation") != "conversation":
        raise Invalid("intent", "conversation", request.query["intent"], code="unsupported")
    if "call_id" in request.query:
        message = "call_id: expected none, got one; a session has one connection here"
        raise Refusal(message, code="unsupported", field="call_id")


def not_held(refused: ResumeRefused) -> Refusal:
    """To whoever comes back in vain."""
    return Refusal(f"resume: {refused}", status=404, code="session_not_found", field="resume")
