"""Logs on stderr: a line of text or a JSON object each, with the session and the request that it is about."""

import json
import logging
import re
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

import msgspec

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["text", "json"]

session_id: ContextVar[str] = ContextVar("session_id", default="")
request_id: ContextVar[str] = ContextVar("request_id", default="")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What ends a line, or what a terminal obeys; clients have a say in what is logged."""


class LogStyle(msgspec.Struct, frozen=True):
    """One for all processes of a server."""

    level: LogLevel = "info"
    format: LogFormat = "text"


@contextmanager
def about(*, session: str = "", request: str = "") -> Generator[None]:
    """Lines logged inside carry these ids."""
    session_token, request_token = session_id.set(session), request_id.set(request)
    try:
        yield
    finally:
        session_id.reset(session_token)
        request_id.reset(request_token)


class TextLines(logging.Formatter):
    """For people, who read the newest lines: only the time of the day, in their own zone. A traceback takes lines of its own."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{clock} {record.levelname.lower():<8} {self._process}: {_on_one_line(record.getMessage())}"
        ids = (("session", session_id.get()), ("request", request_id.get()))
        if known := ", ".join(f"{name} {value}" for name, value in ids if value):
            line += f" ({known})"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonLines(logging.Formatter):
    """`process` names the process that speaks, such as `gateway` or `mouth`."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if session := session_id.get():
            line["session_id"] = session
        if request := request_id.get():
            line["request_id"] = request
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up(process: str, style: LogStyle) -> None:
    """Send every logger of this process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextLines(process) if style.format == "text" else JsonLines(process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(style.level.upper())


def _on_one_line(text: str) -> str:
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def _utc(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds * 1000) % 1000:03d}Z"
