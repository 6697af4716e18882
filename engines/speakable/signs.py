"""Signs become words or pauses, pictures go, and what is left over is tidied."""

import re
import unicodedata

SIGNS = {
    "&": "and",
    "+": "plus",
    "=": "equals",
    "@": "at",
    "#": "hashtag",
    "×": "times",
    "÷": "divided by",
    "≈": "about",
    "~": "about",
    "≠": "is not equal to",
    "≤": "at most",
    "≥": "at least",
    "→": "to",
    "<": "less than",
    ">": "greater than",
    "%": "percent",
    "€": "euros",
    "£": "pounds",
    "$": "dollars",
    "°": "degrees",
    "^": "to the power of",
}
_SIGN = re.compile("[" + re.escape("".join(SIGNS)) + "]")

_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[-=]>"), " to "),
    (re.compile(r"\^ ?two\b"), " squared"),
    (re.compile(r"\^ ?three\b"), " cubed"),
    (re.compile(r"\b([CF])#"), r"\1 sharp"),
    (re.compile(r"(?<=[a-z0-9])\.(?=[a-z])"), " dot "),  # "Node.js"
    (re.compile(r"(?<=\s)[-–—]{1,3}(?=\s)|—|--+"), ", "),
    (re.compile(r"(?<=\w)[/\\_|–](?=\w)"), " "),
    (re.compile(r"[)\]}](?=\s*$)"), ""),
    (re.compile(r"[()\[\]{}]"), " , "),
)
_TIDY: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\s+"), " "),
    (re.compile(r"(?<!\w)-+|-+(?!\w)|(?<!\w)['\"]+(?!\w)"), ""),
    (re.compile(r" +(?=[.,;:!?])"), ""),
    (re.compile(r"[,;:]+(?=[,;:.!?])"), ""),
    (re.compile(r"(?<=[.!?])[,;:]+"), ""),
    (re.compile(r"^[\s.,;:!?-]+"), ""),
    (re.compile(r" {2,}"), " "),
)
_PUNCTUATION = ".,;:!?'\"-"


def signs_spoken(text: str) -> str:
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    return _SIGN.sub(lambda match: f" {SIGNS[match[0]]} ", text)


def tidy(text: str) -> str:
    """Emoji, other symbols and control characters are dropped, letters of any script are kept; "" without a letter."""
    text = "".join(character if _is_said(character) else " " for character in text)
    for pattern, replacement in _TIDY:
        text = pattern.sub(replacement, text)
    return text.strip() if any(map(str.isalpha, text)) else ""


def _is_said(character: str) -> bool:
    return character in _PUNCTUATION or unicodedata.category(character) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl")
