"""What signals mean to a server that runs."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable

from realtime.tls import Certificate, TlsError

STDIN = 0

log = logging.getLogger(__name__)


def on_signals(stop: Callable[[], None], force: Callable[[], None]) -> None:
    """The first SIGTERM or SIGINT asks to stop, each further one forces."""
    asked = False

    def heard() -> None:
        nonlocal asked
        if asked:
            force()
        else:
            asked = True
            stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heard)


def renew_on_hang_up(certificate: Certificate, stop: Callable[[], None]) -> None:
    """SIGHUP asks for the renewed certificate, unless it says that the terminal this runs in is gone."""
    in_terminal = os.isatty(STDIN)

    def renew() -> None:
        if in_terminal and not os.isatty(STDIN):
            return stop()
        try:
            certificate.renew()
            log.info("the certificate has been read again")
        except TlsError as wrong:
            log.error("the certificate stays as it was: %s", wrong)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, renew)
