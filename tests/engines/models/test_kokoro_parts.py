"""Long clauses, against a network that only notes what it was given."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engines.models.kokoro import ACCENTS, MOST_TOKENS, Kokoro, Voice
from engines.parameters import Speech
from engines.payloads import Payload

SPACE, LETTER = 16, 1


class NotingSession:
    def __init__(self) -> None:
        self.tokens: list[list[int]] = []

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[np.generic]]) -> list[NDArray[np.float32]]:
        self.tokens.append(input_feed["tokens"][0].tolist())
        return [np.zeros(10, np.float32)]


def spoken(text: str) -> list[list[int]]:
    """The tokens of each call, without the pads."""
    session = NotingSession()
    language, letters = ACCENTS["a"]
    voice = Voice(language, letters, np.zeros((510, 256), np.float32))
    kokoro = Kokoro(session, {" ": SPACE} | dict.fromkeys("nˈIziɹO", LETTER), {"af_test": voice})
    kokoro.run([(kokoro.open(Speech(voice="test")), Payload(text=text))])
    assert all(call[0] == call[-1] == 0 for call in session.tokens)
    return [call[1:-1] for call in session.tokens]


def test_a_clause_is_one_call():
    assert len(spoken("nine zero")) == 1


def test_more_tokens_than_the_model_takes_are_cut_between_words():
    calls = spoken("nine zero " * 100)
    assert len(calls) > 1
    assert all(len(call) <= MOST_TOKENS for call in calls)
    assert all(call[0] == SPACE for call in calls[1:])
    assert [token for call in calls for token in call] == (spoken("nine zero")[0] + [SPACE]) * 99 + spoken("nine zero")[0]


def test_nothing_to_speak_is_no_call():
    assert spoken("...") == []
