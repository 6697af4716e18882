"""URLs and e-mail addresses as they are said: "example dot com". Nobody reads out a path."""

import re

_TOP_LEVEL_DOMAINS = "com|org|net|edu|gov|io|dev|ai|app|co|info|uk|de|fr|eu|us|ca|au|jp|tv|me"
_LABELS = r"(?:[A-Za-z0-9-]{1,63}\.)+"
_HOST = rf"(?P<host>{_LABELS}[A-Za-z]{{2,24}})(?::[0-9]+)?"
_REST = r"(?:[/?#][^\s<>\"']*[^\s<>\"'.,;:!?)\]])?/?"

_EMAIL = re.compile(rf"(?<![\w.])(?P<name>[A-Za-z0-9._%+-]{{1,64}})@(?P<host>{_LABELS}[A-Za-z]{{2,24}})\b")
_URL = re.compile(rf"(?:https?://|www\.)(?:www\.)?{_HOST}{_REST}")
_BARE_HOST = re.compile(rf"(?<![\w@.])(?P<host>(?:[a-z0-9-]{{1,63}}\.)+(?:{_TOP_LEVEL_DOMAINS}))(?![\w-]|\.\w){_REST}")


def addresses_spoken(text: str) -> str:
    text = _EMAIL.sub(lambda match: f"{_dotted(match['name'])} at {_dotted(match['host'])}", text)
    for pattern in (_URL, _BARE_HOST):
        text = pattern.sub(lambda match: _dotted(match["host"]), text)
    return text


def _dotted(name: str) -> str:
    return name.replace(".", " dot ").replace("-", " dash ").replace("_", " underscore ")
