"""The conversation as the language model sees it, within a budget."""

from collections.abc import Sequence

from engines.parameters import Message
from sessions.conversation import Entry, text_of
from sessions.settings import VoiceSettings

TOKENS_PER_MESSAGE = 6
"""Role and markers of the chat template."""


def messages_of(instructions: str, entries: Sequence[Entry], settings: VoiceSettings) -> tuple[Message, ...]:
    """Instructions and history as messages.

    Over budget, the oldest turns leave whole and for good until a share of the budget is left, and not one turn each
    time: the beginning of the prompt then stays the same for many turns, and so does the engine's cached prefix.
    """
    system = (Message("system", instructions),) if instructions else ()
    live = [entry for entry in entries if not entry.forgotten and text_of(entry.item)]
    fixed = sum(_cost(message.content, settings) for message in system)
    costs = [_cost(text_of(entry.item), settings) for entry in live]
    if fixed + sum(costs) > settings.maximum_context_tokens:
        room = settings.maximum_context_tokens * settings.context_kept_share - fixed
        first = _first_kept(live, costs, room)
        for entry in live[:first]:
            entry.forgotten = True
        live = live[first:]
    return system + tuple(Message(entry.item.role, text_of(entry.item)) for entry in live)


def _first_kept(live: Sequence[Entry], costs: Sequence[float], room: float) -> int:
    """Where the first turn begins from which the rest fits; the last turn is always kept. A turn begins with the user."""
    begins = [place for place, entry in enumerate(live) if entry.item.role == "user"]
    for place in begins:
        if sum(costs[place:]) <= room:
            return place
    return begins[-1] if begins else max(len(live) - 1, 0)


def _cost(text: str, settings: VoiceSettings) -> float:
    return len(text) / settings.characters_per_token + TOKENS_PER_MESSAGE
