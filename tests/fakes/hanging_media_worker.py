"""A media worker whose FLAC codec never comes back: `python tests/fakes/hanging_media_worker.py`."""

import os
import socket
import threading

from realtime.media import messages, transcodes
from realtime.media.encoding import Encoder, encoder_for
from realtime.media.formats import AudioFormat
from realtime.media.worker import Link, MediaWorker

BUSY_LIMIT_S = 0.2


class HangingEncoder:
    def encode(self, pcm: bytes) -> bytes:
        threading.Event().wait()
        return b""

    def finish(self) -> bytes:
        return b""


def hanging_encoder_for(format: AudioFormat, rate: int) -> Encoder:
    return HangingEncoder() if format == "flac" else encoder_for(format, rate)


if __name__ == "__main__":
    messages.HEARTBEAT_S = 0.05
    transcodes.encoder_for = hanging_encoder_for
    MediaWorker(Link(socket.socket(fileno=os.dup(0))), BUSY_LIMIT_S).serve()
    os._exit(0)
