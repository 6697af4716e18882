"""Cuts text of which little that is written becomes much that is spoken."""

import unicodedata

LONGEST_NAME = 15
"""espeak-ng reads a letter that the voice's language does not have by its name: "Chinese letter" has so many phonemes."""


def spoken_pieces(text: str, most: int) -> list[str]:
    """Pieces of about `most` phonemes or less, cut between words where possible. Never empty: one piece for an empty text."""
    pieces: list[str] = []
    start = gap = length = 0
    for place, character in enumerate(text):
        if character.isspace():
            gap = place
        length += _phonemes_at_most(character)
        if length > most:
            end = gap if gap > start else place
            pieces.append(text[start:end].strip())
            start, length = end, sum(map(_phonemes_at_most, text[end : place + 1]))
    return [*pieces, text[start:].strip()]


def _phonemes_at_most(character: str) -> int:
    spelled_out = character.isalnum() and not unicodedata.name(character, "").startswith("LATIN")
    return LONGEST_NAME if spelled_out else 1
