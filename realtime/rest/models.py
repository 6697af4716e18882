"""`GET /v1/models`: the names that `model` fields may hold."""

import msgspec
from aiohttp import web

from realtime.context import CONTEXT
from realtime.rest.voices import check_model

CREATED = 1_767_225_600
"""2026-01-01: the API wants a date; what is deployed has none."""


class Model(msgspec.Struct, frozen=True):
    id: str
    object: str = "model"
    created: int = CREATED
    owned_by: str = "antiphon"


class ModelList(msgspec.Struct, frozen=True):
    data: tuple[Model, ...]
    object: str = "list"


async def list_models(request: web.Request) -> web.Response:
    models = tuple(Model(name) for name in request.app[CONTEXT].catalogue.models)
    return _json(ModelList(models))


async def retrieve_model(request: web.Request) -> web.Response:
    name = request.match_info["model"]
    check_model(request.app[CONTEXT].catalogue.models, name, "model fields")
    return _json(Model(name))


def _json(body: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")
