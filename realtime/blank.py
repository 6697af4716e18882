"""Text in which there is nothing to read."""

import unicodedata

INVISIBLE = ("Cc", "Cf")
"""Control and format characters, such as the zero width space, which str.strip() keeps."""


def is_blank(text: str) -> bool:
    return all(character.isspace() or unicodedata.category(character) in INVISIBLE for character in text)
