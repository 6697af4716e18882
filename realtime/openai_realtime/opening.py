"""What a realtime session begins with, and what its request may ask for."""

from aiohttp import web

from realtime.context import AppContext
from realtime.errors import Invalid, Refusal, UnknownModel
from realtime.openai_realtime.session_config import WireSession
from sessions.manager import ResumeRefused
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


def check_query(request: web.Request, context: AppContext) -> None:
    """Raises Refusal for what another kind of session would need. Other parameters are hints of stock clients."""
    model = request.query.get("model", context.catalogue.pipeline)
    if model != context.catalogue.pipeline:
        raise UnknownModel(model, (context.catalogue.pipeline,), "realtime sessions")
    if request.query.get("intent", "conversation") != "conversation":
        raise Invalid("intent", "conversation", request.query["intent"], code="unsupported")
    if "call_id" in request.query:
        message = "call_id: expected none, got one; a session has one connection here"
        raise Refusal(message, code="unsupported", field="call_id")


def not_held(refused: ResumeRefused) -> Refusal:
    """To whoever comes back in vain."""
    return Refusal(f"resume: {refused}", status=404, code="session_not_found", field="resume")
