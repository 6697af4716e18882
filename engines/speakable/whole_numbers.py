"""Whole numbers in English words, without the commas that a voice would pause at."""

from typing import Literal, cast

from num2words import num2words  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

LONGEST_SAID_AS_ONE = 12
"""Digits; what is longer is a code or an account, and is read digit by digit, as is what starts with a zero."""


def whole(digits: str) -> str:
    """ "42" → "forty-two", "007" → "zero zero seven"."""
    if len(digits) > LONGEST_SAID_AS_ONE or (len(digits) > 1 and digits[0] == "0"):
        return digit_by_digit(digits)
    return _words(int(digits), "cardinal")


def ordinal(number: int) -> str:
    return _words(number, "ordinal")


def year(digits: str) -> str:
    """ "1999" → "nineteen ninety-nine", "2005" → "two thousand five"."""
    return _words(int(digits), "year").replace(" and ", " ").replace("oh-", "oh ")


def digit_by_digit(text: str, *, pauses: bool = False) -> str:
    """The digits of `text` one by one; with `pauses`, a comma where something else stood between them."""
    spoken = [_words(int(character), "cardinal") if character in "0123456789" else "," for character in text]
    joined = " ".join(word for word in spoken if pauses or word != ",")
    return joined.replace(" ,", ",").strip(" ,")


def _words(number: int, kind: Literal["cardinal", "ordinal", "year"]) -> str:
    return cast(str, num2words(number, to=kind)).replace(",", "")
