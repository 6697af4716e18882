"""What a test writes to a session, and what its thinker then reads."""

from engines.parameters import Generation
from fakes.graph import FakeGraph
from sessions.voice.commands import CreateItem
from sessions.voice.items import InputText, Item


def said(text: str, item_id: str = "") -> CreateItem:
    return CreateItem(Item(id=item_id, role="user", status="completed", parts=(InputText(text),)))


def contents(graph: FakeGraph, number: int = -1) -> list[tuple[str, str]]:
    thinking = graph.of("thinker")[number].parameters["thinker"]
    assert isinstance(thinking, Generation)
    return [(message.role, message.content) for message in thinking.messages]
