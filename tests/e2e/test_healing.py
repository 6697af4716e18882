"""Every worker killed or stopped in the middle of a spoken answer: the caller hears of it, the session stays."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import openai
import pytest

import recordings
from bench.conversation import Conversation
from bench.playback import is_voiced
from bench.server import Server, is_ready, until
from e2e.observing import settle

pytestmark = [pytest.mark.real_models, pytest.mark.timeout(180)]

HEARD_S = 1.0
BACK_S = 10.0
"""Besides the worker's warm-up, which takes less than that of the whole server."""
STORY = recordings.read_by_espeak("Tell me a long story about a ship and its crew.")
QUESTION = recordings.read_by_espeak("What is the capital of France?")
SENTENCE = "The quick brown fox jumps over the lazy dog, again and again, until both of them are very tired."
SEMAPHORES = "/dev/shm/"
"""Named ones are files, which outlive whoever is killed."""
LONG = 400
"""Tokens: enough that the language model is still at it when the first sound of a busy machine comes."""
ENDED_WELL = ("completed", "incomplete")
LOST = {"ears": "error", "mind": "response.done", "mouth": "response.done"}
"""What the session says at once. Without ears the answer goes on: nobody hears the user meanwhile."""


@pytest.mark.parametrize(
    ("worker", "sent"),
    [
        ("ears", signal.SIGKILL),
        pytest.param("mind", signal.SIGKILL, marks=pytest.mark.full),
        pytest.param("mouth", signal.SIGKILL, marks=pytest.mark.full),
        pytest.param("mouth", signal.SIGSTOP, marks=pytest.mark.full),
        pytest.param("ears", signal.SIGSTOP, marks=pytest.mark.full),
        pytest.param("mind", signal.SIGSTOP, marks=pytest.mark.full),
    ],
)
async def test_a_talking_session_outlives_each_of_its_workers(
    server: Server, client: openai.AsyncOpenAI, worker: str, sent: signal.Signals
) -> None:
    await somebody_else(client, worker)  # its connection stays
    async with Conversation(server.url) as talk:  # opens what is opened once for each life of a worker
        await talk.write("Say hello.", {"max_output_tokens": 12})
    await settle(server)
    before = holdings(server)
    async with Conversation(server.url, {"max_output_tokens": LONG} if worker == "mind" else None) as talk:
        asking = asyncio.create_task(talk.ask(STORY))
        await talk.until("response.output_audio.delta")
        other = asyncio.create_task(somebody_else(client, worker))
        lost = talk.upcoming(LOST[worker])
        semaphores = mapped(server, SEMAPHORES)
        os.kill(pid_of(server, worker), sent)
        killed_at = time.monotonic()
        await lost
        heard_s = time.monotonic() - killed_at
        told = await asking
        await other
        await until(lambda: is_ready(server.url), BACK_S + server.ready_s)
        back_s = time.monotonic() - killed_at
        again = await talk.ask(QUESTION)
    print(f"{worker} {sent.name}: heard after {heard_s:.2f} s, back after {back_s:.1f} s")
    assert heard_s < HEARD_S
    assert told.status in (ENDED_WELL if worker == "ears" else ("failed",))
    assert again.status in ENDED_WELL, again
    assert "capital" in again.heard
    assert again.answer
    assert any(is_voiced(arrival.pcm) for arrival in again.arrivals)
    await settle(server)
    with contextlib.suppress(TimeoutError):
        await until(back_at_base(server, before))
    assert holdings(server) == before
    assert not left_behind(semaphores - mapped(server, SEMAPHORES))


async def somebody_else(client: openai.AsyncOpenAI, worker: str) -> None:
    """Is served without that worker: reads text, or hears it."""
    if worker == "mind":
        assert await client.audio.speech.create(model="piper-joe", voice="joe", input=SENTENCE, response_format="wav")
        return
    answer = await client.chat.completions.create(
        model="smollm2-135m-instruct", messages=[{"role": "user", "content": "Count to one hundred."}], max_tokens=100
    )
    assert answer.choices[0].finish_reason in ("stop", "length")


class Holdings(msgspec.Struct, frozen=True):
    """Of the gateway: all processes under it, the sockets of its run, its descriptors; and how many arenas for payloads it and
    they map together: an ended worker's stays for as long as any of them does."""

    processes: list[str]
    sockets: list[str]
    descriptors: int
    arenas: int


def holdings(server: Server) -> Holdings:
    return Holdings(
        processes=sorted(name_of(pid) for pid in descendants(server.pid)),
        sockets=sorted(entry.name for entry in run_folder(server).iterdir() if entry.is_socket()),
        descriptors=len(list(Path(f"/proc/{server.pid}/fd").iterdir())),
        arenas=len(mapped(server, "/memfd:antiphon-")),
    )


def mapped(server: Server, prefix: str) -> set[int]:
    """The inodes of what the server's processes map whose name begins so. A semaphore was mapped under another name."""
    fields = [line.split(maxsplit=5) for pid in (server.pid, *descendants(server.pid)) for line in maps(pid)]
    return {int(inode) for *_, inode, name in (each for each in fields if len(each) == 6) if name.startswith(prefix)}


def left_behind(inodes: set[int]) -> list[str]:
    """Files in shared memory, where others make and remove theirs meanwhile."""
    return [file.name for file in os.scandir(SEMAPHORES) if file.inode() in inodes]


def maps(pid: int) -> list[str]:
    """Nothing of a process that has just ended."""
    try:
        return Path(f"/proc/{pid}/maps").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []


def back_at_base(server: Server, before: Holdings) -> Callable[[], Awaitable[bool]]:
    async def is_back() -> bool:
        return holdings(server) == before

    return is_back


def pid_of(server: Server, worker: str) -> int:
    return next(pid for pid in descendants(server.pid) if name_of(pid) == f"antiphon {worker}")


def descendants(pid: int) -> list[int]:
    children = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return [*children, *(pid for child in children for pid in descendants(child))]


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()


def run_folder(server: Server) -> Path:
    """The gateway holds the lock in there."""
    held = (entry.readlink() for entry in Path(f"/proc/{server.pid}/fd").iterdir() if entry.is_symlink())
    return next(file.parent for file in held if file.name == "owner")
