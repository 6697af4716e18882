"""Talk to a running server with a WAV file or a line of text, and hear or save its answer."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from realtime.settings import api_key
from realtime.talk.conversation import Conversation, TalkFailed
from realtime.talk.question import WavError, read_wav
from realtime.talk.speaker import CannotSave, open_speaker
from realtime.talk.trust import trusted

DEFAULT_URL = "http://127.0.0.1:8080"


class OutputClosed(Exception):
    """Nobody can read what is said here. `reason` is empty when the reader has left, as `| head` does."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"cannot write to standard output: {reason}")
        self.reason = reason


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", nargs="?", help="WAV file with what you say, any rate and channels; - reads it from stdin")
    parser.add_argument("--text", help="say this in writing instead")
    parser.add_argument("--url", default=DEFAULT_URL, help=f"where the server is (default {DEFAULT_URL})")
    parser.add_argument("--cacert", type=Path, metavar="FILE", help="certificate in PEM to trust for https, besides the system's")
    parser.add_argument("--voice", help="who answers (default: the server's first voice)")
    parser.add_argument("--out", type=Path, help="WAV file for the answer (default answer.wav when nothing here can play)")
    parser.add_argument("--no-play", action="store_true", help="do not play the answer, save it")


def run(arguments: argparse.Namespace) -> int:
    try:
        asyncio.run(_talk(arguments))
    except OutputClosed as closed:
        _forget_output()
        if closed.reason:
            sys.stderr.write(f"antiphon talk: {closed}\n")
        return 1
    except (TalkFailed, WavError, CannotSave) as wrong:
        sys.stderr.write(f"antiphon talk: {wrong}\n")
        return 1
    return 0


async def _talk(arguments: argparse.Namespace) -> None:
    if (arguments.question is None) == (arguments.text is None):
        raise TalkFailed(
            "expected either a WAV file or --text; for instance: antiphon talk --text 'What is the capital of France?'"
        )
    pcm = None if arguments.question is None else read_wav(arguments.question)
    async with (
        open_speaker(arguments.out, play=not arguments.no_play) as speaker,
        Conversation(arguments.url, api_key(), _say, speaker, trusted(arguments.cacert)) as conversation,
    ):
        if arguments.voice is not None:
            await conversation.choose_voice(arguments.voice)
        if pcm is None:
            await conversation.ask_in_writing(arguments.text)
        else:
            await conversation.ask_aloud(pcm)
        _say(f"{await speaker.finish()}\n")


def _say(text: str) -> None:
    """Raises OutputClosed."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as closed:
        raise OutputClosed("") from closed
    except OSError as wrong:
        raise OutputClosed(wrong.strerror or str(wrong)) from wrong


def _forget_output() -> None:
    """What stdout still holds would fail once more, with a traceback, when Python ends."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
