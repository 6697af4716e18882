"""One life of one node, as the front holds it: the process, the channel to it, and what it says of itself."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence

from realtime.front.channel import Channel, channel_pair
from realtime.front.messages import Handed, NodeSpec, Status, encoder, status_decoder
from realtime.handed import End

COMMAND = (sys.executable, "-m", "realtime.front.node")
TELLS_EVERY_S = 1.0
SILENT_S = 3.0
"""A node that has said nothing for so long gets no more connections."""
HUNG_S = 30.0
"""After so long it is killed: its sessions have gone to other nodes by then."""

log = logging.getLogger(__name__)


class NodeProcess:
    """`on_change` is called when it says something new. Owns the process: `until_over` runs to its end, and being cancelled
    kills it."""

    def __init__(self, process: asyncio.subprocess.Process, end: socket.socket, on_change: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self.pid = process.pid
        self.status = Status()
        self._process = process
        self._on_change = on_change
        self._now = loop.time
        self._heard_at = loop.time()
        self._handed = 0
        self._deaf = False
        """It took nothing, or its channel has ended, since it said something last."""
        self._channel = Channel(end, self._heard, self._hung_up)
        self._look: asyncio.TimerHandle = loop.call_later(SILENT_S, self._look_whether_it_speaks)

    @classmethod
    async def start(cls, spec: NodeSpec, on_change: Callable[[], None], command: Sequence[str] = COMMAND) -> "NodeProcess":
        """Raises OSError."""
        ours, theirs = channel_pair()
        told = os.memfd_create("spec", 0)  # its environment and its command line can be read by others of this user
        try:
            os.write(told, encoder.encode(spec))
            os.lseek(told, 0, os.SEEK_SET)
            with theirs:
                # Its own process group: a Ctrl-C in the terminal is the front's to handle.
                process = await asyncio.create_subprocess_exec(
                    *command,
                    str(theirs.fileno()),
                    str(told),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(), told),
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        finally:
            os.close(told)
        return cls(process, ours, on_change)

    @property
    def is_there(self) -> bool:
        return not self._deaf and self._now() - self._heard_at < SILENT_S

    @property
    def is_ready(self) -> bool:
        return self.is_there and self.status.ready and not self.status.draining

    @property
    def load(self) -> int:
        return self.status.sessions + self._handed

    def take(self, connection: socket.socket, end: End | None) -> None:
        """Passes the connection on; it is closed here. Raises OSError when the node takes none, and then it stays open."""
        try:
            self._channel.send(encoder.encode(Handed(end)), connection)
        except OSError:
            self._deaf = True
            raise
        connection.close()
        self._handed += 1

    def ask_to_end(self) -> None:
        """The first time it drains; asked again it ends at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def until_over(self) -> int:
        """Its exit status; negative: the signal that has killed it."""
        try:
            return await self._process.wait()
        finally:
            self._look.cancel()
            self._channel.close()
            if self._process.returncode is None:
                self.kill()
                await self._process.wait()

    def _heard(self, message: bytes, connection: socket.socket | None) -> None:
        if connection is not None:
            connection.close()
        was_there, before = self.is_there, self.status
        self._heard_at = self._now()
        self.status = status_decoder.decode(message)
        self._handed = 0
        self._deaf = False
        if not was_there or self.status != before:
            self._on_change()

    def _hung_up(self) -> None:
        """It is dying; its exit status is there a moment later."""
        self._deaf = True
        self.kill()
        self._on_change()

    def _look_whether_it_speaks(self) -> None:
        silent_s = self._now() - self._heard_at
        if silent_s >= HUNG_S:
            log.error("node %d says nothing for %.0f s: it is killed", self.pid, silent_s)
            self.kill()
            return
        if silent_s >= SILENT_S:
            self._on_change()
        next_s = HUNG_S - silent_s if silent_s >= SILENT_S else SILENT_S - silent_s
        self._look = asyncio.get_running_loop().call_later(next_s, self._look_whether_it_speaks)
