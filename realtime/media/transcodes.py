"""One job in the media worker: a thread that takes pieces of input and gives pieces of output, within its windows."""

import io
import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

from av.error import FFmpegError

from realtime.media import messages
from realtime.media.call_codecs import CallCodec
from realtime.media.decoding import MAX_FILE_BYTES, NotAudio, decoded
from realtime.media.encoding import BYTES_PER_SAMPLE, encoder_for
from realtime.media.g711_stream import G711Listener, G711Speaker
from realtime.media.messages import Ended, Failed, FailureKind, Lost, Output, Silent, Taken
from realtime.media.opus import OpusError
from realtime.media.opus_stream import OpusListener, OpusSpeaker

log = logging.getLogger(__name__)

Send = Callable[[messages.ToGateway], None]
Heard: TypeAlias = bytes | Lost | Silent
Input = TypeVar("Input", bytes, Heard)


class Cancelled(Exception):
    """The gateway no longer wants this job."""


class Transcode(ABC, Generic[Input]):
    """`deliver`, `grant` and `cancel` come from the reader's thread; `run` is the job's own thread."""

    def __init__(self, order: messages.Order, send: Send) -> None:
        self._number = order.job
        self._send = send
        self._inbox: queue.SimpleQueue[Input | None] = queue.SimpleQueue()  # bounded by the input window on the sender's side
        self._credit = threading.Semaphore(order.windows.output)
        self._cancelled = False
        self._busy_since: float | None = time.monotonic()

    def deliver(self, data: Input | None) -> None:
        self._inbox.put(data)

    def grant(self) -> None:
        self._credit.release()

    def cancel(self) -> None:
        self._cancelled = True
        self._inbox.put(None)
        self._credit.release()

    def busy_s(self) -> float:
        """How long the codec has had hold of the thread; 0 while the job waits for its gateway."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def run(self) -> Ended | Failed:
        """The job to its end, and what to say of it."""
        try:
            self._work()
        except Cancelled:
            return self._failed(FailureKind.CANCELLED, "cancelled")
        except (NotAudio, ValueError) as fault:
            return self._failed(FailureKind.INVALID, str(fault))
        except (FFmpegError, OpusError, MemoryError, TypeError, ArithmeticError) as broken:
            log.exception("job %d broke", self._number)
            return self._failed(FailureKind.BROKEN, f"{type(broken).__name__}: {broken}")
        return Ended(self._number)

    @abstractmethod
    def _work(self) -> None: ...

    def _take(self) -> Input | None:
        """The next piece of input; None after the last."""
        self._busy_since = None
        data = self._inbox.get()
        self._busy_since = time.monotonic()
        if self._cancelled:
            raise Cancelled
        if data is not None:
            self._send(Taken(self._number))
        return data

    def _give(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self._busy_since = None
            self._credit.acquire()
            if self._cancelled:
                raise Cancelled
            self._send(Output(self._number, piece))
            self._busy_since = time.monotonic()

    def _failed(self, kind: FailureKind, message: str) -> Failed:
        return Failed(self._number, kind, message)


class Encoding(Transcode[bytes]):
    def __init__(self, order: messages.Encode, send: Send) -> None:
        super().__init__(order, send)
        self._order = order

    def _work(self) -> None:
        encoder = encoder_for(self._order.format, self._order.rate)
        odd = b""
        while (data := self._take()) is not None:
            data = odd + data
            whole = len(data) - len(data) % BYTES_PER_SAMPLE
            odd = data[whole:]
            self._give(_cut(encoder.encode(data[:whole])))
        self._give(_cut(encoder.finish()))


class Decoding(Transcode[bytes]):
    """Waits for the whole file, since some formats keep their index at the end."""

    def __init__(self, order: messages.Decode, send: Send) -> None:
        super().__init__(order, send)
        self._order = order

    def _work(self) -> None:
        upload = io.BytesIO()  # gives its bytes without copying them, which would hold up everybody's calls
        while (data := self._take()) is not None:
            upload.write(data)
            if upload.tell() > MAX_FILE_BYTES:
                raise NotAudio(f"more than {MAX_FILE_BYTES} bytes, which is what is allowed")
        self._give(decoded(upload.getvalue(), self._order.rate))


class Speaking(Transcode[bytes]):
    def __init__(self, order: messages.Speak, send: Send) -> None:
        super().__init__(order, send)
        self._voice = order.voice

    def _work(self) -> None:
        voice = self._voice
        speaker = OpusSpeaker(voice) if voice.codec == "opus" else G711Speaker(voice.codec)
        while (pcm := self._take()) is not None:
            self._give(speaker.speak(pcm))
        self._give(speaker.finish())


class Listening(Transcode[Heard]):
    def __init__(self, order: messages.Listen, send: Send) -> None:
        super().__init__(order, send)
        self._codec: CallCodec = order.codec

    def _work(self) -> None:
        listener = OpusListener() if self._codec == "opus" else G711Listener(self._codec)
        try:
            while (heard := self._take()) is not None:
                self._give(_sound(listener, heard))
            self._give(listener.finish())
        finally:
            if listener.damaged:
                log.warning("job %d: %d packets were no Opus and count as lost", self._number, listener.damaged)


Job: TypeAlias = Encoding | Decoding | Speaking | Listening


def transcode(order: messages.Order, send: Send) -> Job:
    match order:
        case messages.Encode():
            return Encoding(order, send)
        case messages.Decode():
            return Decoding(order, send)
        case messages.Speak():
            return Speaking(order, send)
        case messages.Listen():
            return Listening(order, send)


def _sound(listener: OpusListener | G711Listener, heard: Heard) -> Iterable[bytes]:
    match heard:
        case Lost():
            return listener.lose(heard.samples)
        case Silent():
            return listener.pause(heard.samples)
        case _:
            return listener.hear(heard)


def _cut(data: bytes) -> Iterable[bytes]:
    return (data[start : start + messages.PIECE_BYTES] for start in range(0, len(data), messages.PIECE_BYTES))
