"""Requests that are no HTTP. aiohttp logs what it could not read, as errors: anybody could fill the log, and there are keys
in it."""

import logging

from aiohttp.http import HttpProcessingError

_server = logging.getLogger("aiohttp.server")


class _WithoutContent(logging.Filter):
    """Says that there was one, and what kind of fault it had."""

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if record.exc_info else None
        if not isinstance(fault, HttpProcessingError):
            return True
        record.msg, record.args = f"{record.getMessage()}: no HTTP ({type(fault).__name__})", ()
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.INFO, "INFO"
        return _server.isEnabledFor(logging.INFO)


_filter = _WithoutContent()


def log_without_content() -> None:
    """From now on, once."""
    _server.addFilter(_filter)
