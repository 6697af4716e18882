"""The gateway's side of one transcode."""

import asyncio
from collections.abc import Callable

from realtime.media import messages
from realtime.media.messages import FailureKind


class MediaFailed(Exception):
    """The transcode has ended without all of its output."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class MediaJob:
    """Write input and finish it, and iterate the output to its end, side by side. Both raise MediaFailed.

    Leaving the `async with` block of the job cancels what is not finished.
    """

    def __init__(self, number: int, windows: messages.Windows, send: Callable[[messages.ToWorker], None]) -> None:
        self.number = number
        self._send = send
        self._credit = asyncio.Semaphore(windows.input)
        # At most a window of pieces, since the worker waits for Grants (policy: block), and the end.
        self._outputs: asyncio.Queue[bytes | None] = asyncio.Queue(windows.output + 1)
        self._failure: MediaFailed | None = None
        self.ended = False

    async def write(self, data: bytes) -> None:
        """Waits while the worker is behind. Pieces of PCM need not hold whole samples."""
        for start in range(0, len(data), messages.PIECE_BYTES):
            await self._put(messages.Data(self.number, data[start : start + messages.PIECE_BYTES]))

    async def lose(self, samples: int) -> None:
        """In place of a packet: so many samples at 24 kHz did not come. Waits as `write` does."""
        await self._put(messages.Lost(self.number, samples))

    async def pause(self, samples: int) -> None:
        """In place of a packet: for so many samples at 24 kHz nothing was said. Waits as `write` does."""
        await self._put(messages.Silent(self.number, samples))

    def finish(self) -> None:
        """The input is complete."""
        self._send(messages.Finish(self.number))

    def __aiter__(self) -> "MediaJob":
        return self

    async def __anext__(self) -> bytes:
        piece = await self._outputs.get()
        if piece is not None:
            self._send(messages.Grant(self.number))
            return piece
        self._outputs.put_nowait(None)
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration

    def cancel(self) -> None:
        """Whoever still reads gets nothing more, not even what has arrived: MediaFailed (cancelled)."""
        if not self.ended:
            self._send(messages.Cancel(self.number))
        while not self._outputs.empty():
            self._outputs.get_nowait()
        self._end(self._failure or MediaFailed(FailureKind.CANCELLED, "cancelled"))

    def receive(self, message: messages.Taken | messages.Output | messages.Ended | messages.Failed) -> None:
        """From the worker."""
        if self.ended:
            return
        match message:
            case messages.Taken():
                self._credit.release()
            case messages.Output():
                self._outputs.put_nowait(message.data)
            case messages.Ended():
                self._end(None)
            case messages.Failed():
                self._end(MediaFailed(message.kind, message.message))

    async def _put(self, piece: messages.Data | messages.Lost | messages.Silent) -> None:
        if self._failure is None:
            await self._credit.acquire()
        if self._failure is not None:
            raise self._failure
        self._send(piece)

    def _end(self, failure: MediaFailed | None) -> None:
        self.ended = True
        self._failure = failure
        self._outputs.put_nowait(None)
        self._credit.release()
