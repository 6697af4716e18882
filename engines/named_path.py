"""A path as an operator writes it: `~` is a home, and a relative one counts from the deployment's file."""

import os
from pathlib import Path

from engines.configuration import WrongValue, shown


def named_path(file: Path, key: str, value: str) -> Path:
    """Absolute, with nothing looked up. Raises ConfigurationError for what no file can be called."""
    try:
        os.fsencode(value)
        path = Path(value).expanduser()
    except (UnicodeError, RuntimeError) as unfit:
        raise WrongValue(file, key, "the path of a file or folder, under a home that exists", shown(value)) from unfit
    if "\0" in value:
        raise WrongValue(file, key, "a path without the character NUL", shown(value))
    return Path(os.path.abspath(file.parent / path))
