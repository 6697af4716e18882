"""Structured logs: one JSON object per line on stderr, with the session and the request that the line is about."""

import json
import logging
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

session_id: ContextVar[str] = ContextVar("session_id", default="")
request_id: ContextVar[str] = ContextVar("request_id", default="")


@contextmanager
def about(*, session: str = "", request: str = "") -> Generator[None]:
    """Lines logged inside carry these ids."""
    session_token, request_token = session_id.set(session), request_id.set(request)
    try:
        yield
    finally:
        session_id.reset(session_token)
        request_id.reset(request_token)


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


def set_up(process: str, level: str = "INFO") -> None:
    """Send every logger of this process to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _utc(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds * 1000) % 1000:03d}Z"
