"""An agent in the middle of a long answer."""

from fakes.graph import FakeGraph
from fakes.playout import FakePlayout
from fakes.voice_client import VoiceClient
from sessions.voice.commands import CreateResponse
from sessions.voice.events import ResponseCreated
from sessions.voice.playout import Heard
from sessions.voice.settings import VoiceSettings

LONG = tuple(f"This is sentence {number}. " for number in range(20))
SETTLED_MS = VoiceSettings().echo_guard_ms + 1_000


class Floor(FakePlayout):
    """Plays for ever once something was given to it: the agent has the floor until it is cleared."""

    def __init__(self, levels: bool = True) -> None:
        super().__init__()
        self.played_levels = [-20.0] * 100 if levels else []
        self.unfinished = (Heard("resp_1", "item_1", 400),)


def scripted(*transcripts: str) -> FakeGraph:
    """Understands these, one after the other, and never ends an answer."""
    graph = FakeGraph()
    graph.transcripts, graph.answers = list(transcripts), [LONG]
    graph.hold("audio").step(1)
    return graph


async def answering(client: VoiceClient, settled_ms: int = SETTLED_MS) -> None:
    """The answer has been heard for a while."""
    await client.send(CreateResponse())
    await client.until(ResponseCreated)
    await client.say(0, settled_ms)
