"""Answers' sound on its way through real encoders into the playout."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine

import pytest_asyncio

from fakes.graph import tone
from fakes.voice_client import settle
from realtime.media.call_codecs import Voice
from realtime.media.client import MediaClient
from realtime.openai_realtime import server_events
from realtime.webrtc.loudspeaker import Loudspeaker
from realtime.webrtc.outlet import Outlet
from sessions.voice.events import AudioDelta, AudioDone, Response, ResponseDone
from sessions.voice.playout import Heard


class Room:
    """A loudspeaker, the call that it is plugged into, and what came out of it."""

    def __init__(self, media: MediaClient, tasks: asyncio.TaskGroup) -> None:
        self.silent_s = 0.0
        self.outlet = self.new_outlet()
        self._tasks = tasks
        self._speaking: set[asyncio.Task[None]] = set()
        self._ever_told: set[str] = set()
        self.speaker = Loudspeaker(media, self._spawn, lambda: None)
        self.speaker.plug(self.outlet)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(work)
        self._speaking.add(task)
        return task

    async def encoded(self) -> None:
        """All that was said, to its end."""
        await asyncio.wait(self._speaking, timeout=10)

    def new_outlet(self) -> Outlet:
        return Outlet(Voice, lambda: self.silent_s, lambda: None)

    def move(self) -> Outlet:
        """Into another call; the one until now."""
        before, self.outlet = self.outlet, self.new_outlet()
        self.speaker.plug(self.outlet)
        return before

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
        return sum(1 for _ in iter(self.outlet.next, None))

    def lose(self, slots: int) -> list[bytes | None]:
        """What is played while the client gives no sign of life."""
        self.silent_s = 0.04
        played = [self.outlet.next()]
        for _ in range(slots - 1):
            self.silent_s += 0.02
            played.append(self.outlet.next())
        return played

    def told(self) -> list[str]:
        notices = [self.outlet.notices.get_nowait() for _ in range(self.outlet.notices.qsize())]
        told = [_told(notice) for notice in notices]
        self._ever_told.update(told)
        return told

    async def played_to_its_end(self, name: str) -> int:
        count = 0
        async with asyncio.timeout(10):
            while f"stopped {name}" not in self._ever_told:
                count += self.played()
                self.told()
                await asyncio.sleep(0)
        return count


def _told(notice: server_events.ServerEvent) -> str:
    match notice:
        case server_events.PlaybackStarted(response_id=name):
            return f"started {name}"
        case server_events.PlaybackStopped(response_id=name):
            return f"stopped {name}"
        case server_events.Error(error=error):
            return error.message
        case _:
            raise AssertionError(notice)


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
        await room.until(lambda: room.outlet.next() is not None)
        assert room.speaker.clear() == (Heard("a", "item_a", 20),)


async def test_the_sound_of_an_answer_whose_encoder_is_lost_is_given_up_and_the_next_one_plays() -> None:
    async with MediaClient(back_off_s=(0.0,)) as media, asyncio.TaskGroup() as tasks:
        room = Room(media, tasks)
        await room.say("a", 40)
        await room.until(lambda: room.outlet.next() is not None)
        assert media.pid is not None
        os.kill(media.pid, signal.SIGKILL)
        told: list[str] = []
        await room.until(lambda: told.extend(room.told()) or any("response a was lost" in words for words in told))
        await room.say("a", 500)
        await room.end("a")
        assert await room.played_to_its_end("a") <= 2  # what had been encoded by then
        await room.say("b", 40)
        await room.end("b")
        assert await room.played_to_its_end("b") in (2, 3)


async def test_an_answer_goes_on_in_the_next_call_where_it_was_heard_last(media: MediaClient) -> None:
    async with asyncio.TaskGroup() as tasks:
        room = Room(media, tasks)
        await room.say("a", 400)
        await room.end("a")
        await room.encoded()
        assert room.outlet.next() is not None
        heard = [room.outlet.next() for _ in range(4)]
        assert room.told() == ["started a"]
        lost = room.lose(5)
        before = room.move()
        assert before.next() is None
        assert None not in heard
        assert [room.outlet.next() for _ in range(6)] == [heard[-1], *lost]
        assert 10 <= await room.played_to_its_end("a") <= 11
        assert before.notices.empty()


async def test_while_nobody_is_called_nothing_is_played_and_what_was_not_heard_does_not_count(media: MediaClient) -> None:
    async with asyncio.TaskGroup() as tasks:
        room = Room(media, tasks)
        await room.say("a", 400)
        await room.end("a")
        await room.encoded()
        assert room.outlet.next() is not None
        assert room.outlet.next() is not None  # nothing says that this one arrived
        room.lose(5)
        assert room.speaker.detach()
        assert room.outlet.next() is None
        assert room.speaker.has_floor
        assert room.speaker.clear() == (Heard("a", "item_a", 20),)
