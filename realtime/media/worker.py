"""`python -m realtime.media.worker NAME LEVEL FORMAT [first]`: codecs for the gateway that started it, one thread per job.

Its standard input is its end of the socket pair to the gateway, and its lifeline: when that closes, the process ends.
"""

import gc
import logging
import os
import resource
import socket
import sys
import threading
import time

import msgspec
from setproctitle import setproctitle

from engines import logs
from engines.messages.framing import frame
from realtime.media import messages
from realtime.media.messages import Failed, FailureKind
from realtime.media.transcodes import Job, Listening, Speaking, transcode
from realtime.priority import CODEC, ask_for_priority

log = logging.getLogger(__name__)

MAX_DATA_BYTES = 2 << 30
"""Address space for data: the last fence against a file that makes a codec allocate without end."""
THREAD_STACK_BYTES = 2 << 20
SWITCH_INTERVAL_S = 0.0005
"""Python's default of 5 ms would let one long decode hold up each piece of everybody's speech by that much."""
MAX_STUCK_JOBS = 8
"""Threads that a codec has not given back; with more of them the process makes room for a fresh one."""


class Link:
    """The worker's end of the socket. Any thread may send; one reads."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._incoming = sock.makefile("rb")
        self._sending = threading.Lock()

    def send(self, message: messages.ToGateway) -> None:
        data = frame(messages.encoder.encode(message))
        try:
            with self._sending:
                self._sock.sendall(data)
        except OSError:
            os._exit(0)  # the gateway is gone

    def next(self) -> messages.ToWorker | None:
        """The next message, or None when the gateway is gone."""
        header = self._incoming.read(4)
        length = int.from_bytes(header, "big")
        body = self._incoming.read(length)
        if len(header) < 4 or len(body) < length:
            return None
        return messages.to_worker_decoder.decode(body)


class MediaWorker:
    """`first`: calls ask to run before everything else."""

    def __init__(self, link: Link, busy_limit_s: float = messages.BUSY_LIMIT_S, *, first: bool = False) -> None:
        self._link = link
        self._first = first
        self._busy_limit_s = busy_limit_s
        self._jobs: dict[int, Job] = {}
        self._stuck = 0

    def serve(self) -> None:
        """Until the gateway is gone."""
        threading.Thread(target=self._watch, daemon=True, name="watch").start()
        self._be_first()
        self._link.send(messages.Ready(os.getpid()))
        while (message := self._link.next()) is not None:
            self._take(message)

    def _take(self, message: messages.ToWorker) -> None:
        match message:
            case messages.Encode() | messages.Decode() | messages.Speak() | messages.Listen():
                self._start(message.job, transcode(message, self._link.send))
            case messages.Data():
                self._deliver(message.job, message.data)
            case messages.Lost() | messages.Silent():
                if isinstance(job := self._jobs.get(message.job), Listening):
                    job.deliver(message)
            case messages.Finish():
                self._deliver(message.job, None)
            case messages.Grant():
                if (job := self._jobs.get(message.job)) is not None:
                    job.grant()
            case messages.Cancel():
                if (job := self._jobs.get(message.job)) is not None:
                    job.cancel()

    def _start(self, number: int, job: Job) -> None:
        self._jobs[number] = job
        threading.Thread(target=self._run, args=(number, job), daemon=True, name=f"job-{number}").start()

    def _be_first(self) -> None:
        if self._first:
            ask_for_priority(CODEC)

    def _run(self, number: int, job: Job) -> None:
        if isinstance(job, Speaking | Listening):
            self._be_first()
        end = job.run()
        gc.collect()  # PyAV's containers are cycles, and each holds a thread of its resampler until it is freed
        if self._jobs.pop(number, None) is not None:
            self._link.send(end)

    def _deliver(self, number: int, data: bytes | None) -> None:
        """Input for a job that has ended meanwhile is dropped."""
        if (job := self._jobs.get(number)) is not None:
            job.deliver(data)

    def _watch(self) -> None:
        """The heartbeat, and the answer for jobs whose codec does not come back."""
        while True:
            time.sleep(messages.HEARTBEAT_S)
            self._link.send(messages.Alive())
            for number, job in tuple(self._jobs.items()):
                if job.busy_s() > self._busy_limit_s and self._jobs.pop(number, None) is not None:
                    self._give_up(number, job)
            if self._stuck >= MAX_STUCK_JOBS:
                log.error("%d codecs have not come back; the media worker ends itself", self._stuck)
                os._exit(1)

    def _give_up(self, number: int, job: Job) -> None:
        self._stuck += 1
        job.cancel()
        message = f"the codec has not come back for {self._busy_limit_s:g} s"
        self._link.send(Failed(number, FailureKind.STUCK, message))


def main() -> None:
    name, level, format, *first = sys.argv[1:]
    setproctitle(f"antiphon {name}")
    logs.set_up(name, msgspec.convert({"level": level, "format": format}, logs.LogStyle))
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_DATA_BYTES, MAX_DATA_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.stack_size(THREAD_STACK_BYTES)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    try:
        MediaWorker(Link(socket.socket(fileno=os.dup(0))), first=bool(first)).serve()
    finally:
        os._exit(0)  # a thread inside a codec must not keep an orphan alive


if __name__ == "__main__":
    main()
