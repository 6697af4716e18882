"""Text to phonemes with the espeak-ng program, run as a process (it is GPL-3.0, so it is not linked).

One run takes 9 ms, most of it loading its dictionary; a clause is one run, so a long-lived process would gain little.
espeak-ng drops punctuation, which the voices need for their melody: the text is split at punctuation, the pieces are
transcribed as paragraphs of one run, and the marks are put back.
"""

import re
import shutil
import subprocess
from functools import lru_cache

RUN_TIMEOUT_S = 10.0
LONGEST_PIECE_CHARS = 250
"""espeak-ng breaks longer clauses by itself, and its lines would no longer match the pieces."""

_MARK = re.compile(r"[.,;:!?…—]+(?=[\s\"'”’)\]]|$)")
_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_PHONEME_INPUT = re.compile(r"\[\[|\]\]")
_LANGUAGE_SWITCH = re.compile(r"\([a-z-]+\)")


class EspeakMissing(RuntimeError):
    """The program is not installed."""


class EspeakFailed(RuntimeError):
    """The program did not answer as it should."""


def find_espeak() -> str:
    """Path of the program. Raises EspeakMissing."""
    path = shutil.which("espeak-ng")
    if path is None:
        raise EspeakMissing(
            "the program espeak-ng is not installed; install the Debian package of that name (apt install espeak-ng)"
        )
    return path


@lru_cache(maxsize=256)
def phonemes(text: str, language: str = "en-us", tie: str = "") -> str:
    """IPA of `text` with its punctuation, words parted by spaces; "" when nothing in it can be spoken.

    `language` is an espeak-ng voice; `tie`, when given, joins the letters of diphthongs and affricates ("a^ɪ").
    Raises EspeakMissing and EspeakFailed.
    """
    pieces = _pieces(_PHONEME_INPUT.sub(" ", _UNSPEAKABLE.sub(" ", text)))
    spoken = [words for words, _ in pieces if words]
    if not spoken:
        return ""
    sounds = iter(_transcribe(spoken, language, tie))
    joined = [(next(sounds) if words else "") + mark for words, mark in pieces]
    return " ".join(part for part in joined if part)


def _pieces(text: str) -> list[tuple[str, str]]:
    """(words, mark that ends them); words without a letter or digit are empty."""
    pieces: list[tuple[str, str]] = []
    start = 0
    for mark in _MARK.finditer(text):
        pieces += _short_pieces(text[start : mark.start()], mark.group()[0])
        start = mark.end()
    pieces += _short_pieces(text[start:], "")
    return pieces


def _short_pieces(words: str, mark: str) -> list[tuple[str, str]]:
    if not any(character.isalnum() for character in words):
        return [("", mark)] if mark else []
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + len(word) >= LONGEST_PIECE_CHARS:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return [*((line, "") for line in lines[:-1]), (lines[-1], mark)]


def _transcribe(pieces: list[str], language: str, tie: str) -> list[str]:
    """One line of IPA for each piece; piece by piece where espeak-ng saw other clauses than we did."""
    lines = _run("\n\n".join(pieces), language, tie)
    if len(lines) == len(pieces):
        return lines
    return [" ".join(_run(piece, language, tie)) for piece in pieces]


def _run(text: str, language: str, tie: str) -> list[str]:
    command = [find_espeak(), "-q", "--ipa", "-b", "1", "-v", language, "--stdin"]
    if tie:
        command.append(f"--tie={tie}")
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=RUN_TIMEOUT_S, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
        raise EspeakFailed(f"espeak-ng could not transcribe {len(text)} characters: {failure}") from failure
    lines = _LANGUAGE_SWITCH.sub("", done.stdout.decode()).splitlines()
    return [line.strip() for line in lines if line.strip()]
