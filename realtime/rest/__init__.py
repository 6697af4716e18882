"""OpenAI's REST endpoints over the stage graph."""

from aiohttp import web

from realtime.picture_links import PATH
from realtime.rest.chat import create_chat_completion
from realtime.rest.images import create_images, edit_images
from realtime.rest.models import list_models, retrieve_model
from realtime.rest.pictures import get_picture
from realtime.rest.speech import create_speech
from realtime.rest.transcriptions import create_transcription
from realtime.rest.videos import create_video, delete_video, get_content, list_videos, retrieve_video


def routes() -> list[web.RouteDef]:
    return [
        web.get("/v1/models", list_models),
        web.get("/v1/models/{model}", retrieve_model),
        web.post("/v1/chat/completions", create_chat_completion),
        web.post("/v1/audio/speech", create_speech),
        web.post("/v1/audio/transcriptions", create_transcription),
        web.post("/v1/images/generations", create_images),
        web.post("/v1/images/edits", edit_images),
        web.get(PATH + "{name}", get_picture),
        web.post("/v1/videos", create_video),
        web.get("/v1/videos", list_videos),
        web.get("/v1/videos/{video_id}", retrieve_video),
        web.delete("/v1/videos/{video_id}", delete_video),
        web.get("/v1/videos/{video_id}/content", get_content),
    ]
