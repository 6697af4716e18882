"""Whose certificates the client accepts."""

import ssl
from pathlib import Path

from realtime.talk.refusals import TalkFailed


def trusted(cacert: Path | None) -> ssl.SSLContext:
    """The system's authorities (or those that SSL_CERT_FILE names), and `cacert`. Raises TalkFailed."""
    context = ssl.create_default_context()
    if cacert is None:
        return context
    try:
        context.load_verify_locations(cafile=cacert)
    except ssl.SSLError as wrong:
        raise TalkFailed(f"--cacert: {cacert}: expected a certificate in PEM, got something else") from wrong
    except OSError as wrong:
        raise TalkFailed(f"--cacert: {cacert}: it cannot be read: {wrong.strerror}") from wrong
    return context
