"""The conversation as the language model sees it, within a budget."""

from collections.abc import Sequence

from engines.parameters import Message
from sessions.voice.conversation import Entry, text_of
from sessions.voice.settings import VoiceSettings

TOKENS_PER_MESSAGE = 6
"""Role and markers of the chat template."""


def messages_of(instructions: str, entries: Sequence[Entry], settings: VoiceSettings) -> tuple[Message, ...]:
    """Instructions and as much of the latest history as fits the budget, as messages."""
    system = (Message("system", instructions),) if instructions else ()
    return system + tuple(Message(entry.item.role, text_of(entry.item)) for entry in _kept(instructions, entries, settings))


def forget_what_left(instructions: str, entries: Sequence[Entry], settings: VoiceSettings) -> None:
    """Turns that do not fit any more under the session's own instructions leave for good.

    Over budget, they leave whole until a share of the budget is left, and not one turn each time: the beginning of the prompt
    then stays the same for many turns, and so does the engine's cached prefix.
    """
    live = _live(entries)
    for entry in live[: len(live) - len(_kept(instructions, entries, settings))]:
        entry.forgotten = True


def _live(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if not entry.forgotten and text_of(entry.item)]


def _kept(instructions: str, entries: Sequence[Entry], settings: VoiceSettings) -> list[Entry]:
    live = _live(entries)
    fixed = _cost(instructions, settings) if instructions else 0.0
    costs = [_cost(text_of(entry.item), settings) for entry in live]
    if fixed + sum(costs) <= settings.maximum_context_tokens:
        return live
    room = settings.maximum_context_tokens * settings.context_kept_share - fixed
    return live[_first_kept(live, costs, room) :]


def _first_kept(live: Sequence[Entry], costs: Sequence[float], room: float) -> int:
    """Where the first turn begins from which the rest fits; the last turn is always kept. A turn begins with the user."""
    begins = [place for place, entry in enumerate(live) if entry.item.role == "user"]
    for place in begins:
        if sum(costs[place:]) <= room:
            return place
    return begins[-1] if begins else max(len(live) - 1, 0)


def _cost(text: str, settings: VoiceSettings) -> float:
    return len(text) / settings.characters_per_token + TOKENS_PER_MESSAGE
