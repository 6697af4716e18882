"""One life of one worker process, and the end of everything that it started."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from io import FileIO
from pathlib import Path
from typing import IO

import msgspec

from engines.launching.process_group import kill_all_but_trackers
from engines.launching.withheld import without_secrets
from engines.worker import spec as specs
from engines.worker.spec import WorkerSpec

STOP_GRACE_S = 3.0
"""What a worker gets between the polite signal and the other one."""
TRACKERS_GRACE_S = 3.0
"""For those that clean up after it: they wait for the memory of the rest of its group to be freed."""
OUTPUT_GRACE_S = 1.0
"""Wait for the last lines of an ended group, in case one of its processes has left the group and keeps the pipe."""
TAIL_BYTES = 4096
READ_BYTES = 65_536
BACKLOG = 64
FRAME_OF_A_TRACEBACK = " |+-\t\r"
"""What Python draws around those of an ExceptionGroup."""
STDERR = 2


def environment(spec: WorkerSpec, temporary: str | None = None) -> dict[str, str]:
    """Our own without what is `withheld`, plus what keeps the libraries in it from asking the network or taking every core, and
    their temporary files in the folder `temporary` (None: where others have them)."""
    return {
        **without_secrets(),
        **({} if temporary is None else {"TMPDIR": temporary}),
        "OMP_NUM_THREADS": str(spec.threads),
        "ORT_DISABLE_TELEMETRY": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


class WorkerProcess:
    """Runs from `start` on. Its exit is noticed at once, through a pidfd, and takes its whole process group with it, and the
    temporary files of all of them."""

    def __init__(self, process: "subprocess.Popen[bytes]", temporary: str, log_fd: int) -> None:
        self.pid = process.pid
        self._process = process
        self._temporary = temporary
        self._output = _Output(process, log_fd)
        self._exited = asyncio.Event()
        self._life = asyncio.create_task(self._until_nothing_is_left(), name=f"life of {process.pid}")

    @classmethod
    def start(cls, spec: WorkerSpec, log_fd: int = STDERR) -> "WorkerProcess":
        """The worker inherits a socket that listens already, so whoever connects now is served once it is up.

        Raises OSError.
        """
        temporary = tempfile.mkdtemp(dir=Path(spec.socket).parent)
        try:
            return cls(_spawn(spec, temporary), temporary, log_fd)
        except OSError:
            os.rmdir(temporary)
            raise

    async def __aenter__(self) -> "WorkerProcess":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def exited(self) -> None:
        await self._exited.wait()

    def kill(self) -> None:
        """At once. The end of all that it started is still to be waited for."""
        if not self._exited.is_set():
            os.kill(self.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Returns when nothing of the group is left; being cancelled only takes away the grace. Idempotent."""
        try:
            if not self._exited.is_set():
                os.kill(self.pid, signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(STOP_GRACE_S):
                        await self._exited.wait()
        finally:
            self.kill()
            await asyncio.wait([self._life])
            await self._last_output()

    async def _until_nothing_is_left(self) -> None:
        await _end_of(self.pid)
        self._exited.set()
        # The exit status is fetched last: until then nobody else can get this group's number.
        trackers = await asyncio.to_thread(kill_all_but_trackers, self.pid)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TRACKERS_GRACE_S):
                for tracker in trackers:
                    await _end_of(tracker)
        os.killpg(self.pid, signal.SIGKILL)
        await asyncio.to_thread(shutil.rmtree, self._temporary, ignore_errors=True)
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            _stdin(self._process).close()

    async def _last_output(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(OUTPUT_GRACE_S):
                await self._output.ended.wait()

    def last_words(self) -> str:
        """How it ended, and the last line that it wrote when it ended by itself: who is killed has no say in it."""
        status = self._process.returncode
        if status < 0:
            return f"killed by {signal.Signals(-status).name}"
        lines = self._output.tail.decode(errors="replace").split("\n")
        said = [line.strip(FRAME_OF_A_TRACEBACK) for line in lines]
        return ": ".join([f"exit status {status}", *[_message(line) for line in said if line][-1:]])


async def _end_of(pid: int) -> None:
    """Noticed at once, whoever's child it is."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(pidfd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


class _Output:
    """Passes on what the worker writes and keeps the end of it.

    In a thread of its own, which lives until the last writer has gone: it waits where nobody reads what we pass on.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", log_fd: int) -> None:
        assert process.stdout is not None
        self.tail = b""
        self.ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        pipe, log = process.stdout, open(os.dup(log_fd), "wb", buffering=0)  # noqa: SIM115 (the thread closes it)
        threading.Thread(target=self._pass_on, args=(pipe, log), name=f"output of {process.pid}", daemon=True).start()

    def _pass_on(self, pipe: IO[bytes], log: FileIO) -> None:
        with pipe, log:
            while data := os.read(pipe.fileno(), READ_BYTES):
                self.tail = (self.tail + data)[-TAIL_BYTES:]
                with contextlib.suppress(OSError):  # nobody will ever read it
                    log.write(data)
        with contextlib.suppress(RuntimeError):  # the loop has ended before
            self._loop.call_soon_threadsafe(self.ended.set)


class _LogLine(msgspec.Struct):
    """Of a log in JSON."""

    message: str


def _message(line: str) -> str:
    try:
        return msgspec.json.decode(line, type=_LogLine).message
    except msgspec.MsgspecError:
        return line


def _spawn(spec: WorkerSpec, temporary: str) -> "subprocess.Popen[bytes]":
    with _listening(Path(spec.socket)) as listener:
        process = subprocess.Popen(
            [sys.executable, "-m", "engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(listener.fileno(),),
            env=environment(spec, temporary),
        )
        spec = msgspec.structs.replace(spec, listen_fd=listener.fileno())
    # stdin stays open: its end tells the worker that we are gone.
    with contextlib.suppress(BrokenPipeError):
        _stdin(process).write(specs.encoder.encode(spec) + b"\n")
        _stdin(process).flush()
    return process


def _stdin(process: "subprocess.Popen[bytes]") -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


def _listening(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(BACKLOG)
    return listener
