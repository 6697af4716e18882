"""Text made speakable: what a language model writes for the eye becomes what a person would read aloud.

Nothing is added and nothing retold: marks of layout go, signs and numbers become words. Acronyms stay as they are, because
espeak-ng spells those that nobody pronounces.
"""

import unicodedata

from engines.speakable.abbreviations import abbreviations_spoken
from engines.speakable.addresses import addresses_spoken
from engines.speakable.numbers import numbers_spoken
from engines.speakable.plain_lines import plain_lines
from engines.speakable.signs import signs_spoken, tidy

_BEFORE_NFKC = str.maketrans(
    {
        "²": "^2",
        "³": "^3",
        "½": " 1/2",
        "¼": " 1/4",
        "¾": " 3/4",
        "…": "...",
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "™": "",
        "®": "",
    }
)


def speakable(text: str) -> str:
    """`text` in words and plain punctuation on one line; "" when there is nothing to say. Any string is accepted."""
    text = plain_lines(unicodedata.normalize("NFKC", text.translate(_BEFORE_NFKC)))
    for step in (addresses_spoken, abbreviations_spoken, numbers_spoken, signs_spoken, tidy):
        text = step(text)
    return text
