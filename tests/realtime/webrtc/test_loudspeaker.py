"""Answers' sound on its way through real encoders into the playout."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable

import pytest_asyncio

from fakes.graph import tone
from fakes.voice_client import settle
from realtime.media.client import MediaClient
from realtime.webrtc.loudspeaker import Loudspeaker
from realtime.webrtc.playout import Playout
from sessions.events import AudioDelta, AudioDone, Response, ResponseDone
from sessions.playout import Heard


class Room:
    """A loudspeaker and what came out of it."""

    def __init__(self, media: MediaClient, tasks: asyncio.TaskGroup) -> None:
        self.stopped: asyncio.Queue[str] = asyncio.Queue()
        self.failures: list[str] = []
        self.playout = Playout(lambda name: None, self.stopped.put_nowait, lambda: None)
        self.speaker = Loudspeaker(media, self.playout, tasks.create_task, self.failures.append)

    async def say(self, name: str, *durations_ms: int) -> None:
        for duration_ms in durations_ms:
            await self.speaker.play(AudioDelta(name, f"item_{name}", tone(duration_ms), 0))

    async def end(self, name: str) -> None:
        await self.speaker.finish(AudioDone(name, f"item_{name}"))
        self.speaker.forget(
            ResponseDone(Response(id=name, status="completed", modality="audio", voice="joe", conversation="auto"))
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():  # noqa: ASYNC110 (a playout rings no bell: its clock asks it)
                await asyncio.sleep(0)

    def played(self) -> int:
        """Packets that the playout gives now."""
        return sum(1 for _ in iter(self.playout.next, None))

    async def played_to_its_end(self, name: str) -> int:
        count = 0
        async with asyncio.timeout(10):
            while self.stopped.empty():
                count += self.played()
                await asyncio.sleep(0)
        assert self.stopped.get_nowait() == name
        return count


@pytest_asyncio.fixture
async def media() -> AsyncIterator[MediaClient]:
    async with MediaClient() as client:
        yield client


async def test_an_answer_becomes_its_packets_and_no_more(media: MediaClient) -> None:
    async with asyncio.TaskGroup() as tasks:
        room = Room(media, tasks)
        await room.say("a", 100, 30, 70)
        await room.end("a")
        assert await room.played_to_its_end("a") in (10, 11)  # the encoder's look-ahead may need one more
        await room.say("b", 40)
        await room.end("b")
        assert await room.played_to_its_end("b") in (2, 3)


async def test_nothing_of_a_cleared_answer_comes_whatever_is_still_given(media: MediaClient) -> None:
    async with asyncio.TaskGroup() as tasks:
        room = Room(media, tasks)
        await room.say("a", 1_000)
        room.speaker.clear()
        await room.say("a", 1_000, 1_000)
        await room.end("a")
        await room.say("b", 40)
        await room.end("b")
        assert await room.played_to_its_end("b") in (2, 3)
        assert room.played() == 0


async def test_who_waits_to_give_sound_is_freed_by_clearing(media: MediaClient) -> None:
    async with asyncio.TaskGroup() as tasks:
        room = Room(media, tasks)
        talking = tasks.create_task(room.say("a", *[20_000] * 40))
        await settle()
        assert not talking.done()
        room.speaker.clear()
        await talking
        assert room.played() == 0


async def test_it_tells_what_was_heard(media: MediaClient) -> None:
    async with asyncio.TaskGroup() as tasks:
        room = Room(media, tasks)
        await room.say("a", 400)
        await room.until(lambda: room.playout.next() is not None)
        assert room.speaker.clear() == (Heard("a", "item_a", 20),)


async def test_the_sound_of_an_answer_whose_encoder_is_lost_is_given_up_and_the_next_one_plays() -> None:
    async with MediaClient(back_off_s=(0.0,)) as media, asyncio.TaskGroup() as tasks:
        room = Room(media, tasks)
        await room.say("a", 40)
        await room.until(lambda: room.playout.next() is not None)
        assert media.pid is not None
        os.kill(media.pid, signal.SIGKILL)
        await room.until(lambda: bool(room.failures))
        assert "response a was lost" in room.failures[0]
        await room.say("a", 500)
        await room.end("a")
        assert await room.played_to_its_end("a") <= 2  # what had been encoded by then
        await room.say("b", 40)
        await room.end("b")
        assert await room.played_to_its_end("b") in (2, 3)
