"""What is played in which slot."""

import asyncio
import math

from fakes.voice_client import settle
from realtime.webrtc.playout import MAX_HOLD_SLOTS, MAX_PACKETS, Playout
from sessions.voice.playout import Heard, Playing


class Told:
    def __init__(self) -> None:
        self.started: list[str] = []
        self.stopped: list[str] = []
        self.dry = 0
        self.playout = Playout(self.started.append, self.stopped.append, self._ran_dry)

    def _ran_dry(self) -> None:
        self.dry += 1

    async def say(self, response_id: str, *packets: bytes, complete: bool = True) -> None:
        self.playout.begin(response_id, f"item_{response_id}")
        for packet in packets:
            await self.playout.put(response_id, packet)
        if complete:
            self.playout.complete(response_id)

    def slots(self, count: int) -> list[bytes | None]:
        return [self.playout.next() for _ in range(count)]


async def test_one_answer_after_the_other() -> None:
    told = Told()
    await told.say("a", b"1", b"2", complete=False)
    await told.say("b", b"3")
    assert told.slots(3) == [b"1", b"2", None]
    assert (told.started, told.stopped) == (["a"], [])
    await told.playout.put("a", b"2b")
    told.playout.complete("a")
    assert told.slots(4) == [b"2b", b"3", None, None]
    assert (told.started, told.stopped) == (["a", "b"], ["a", "b"])


async def test_an_answer_that_was_played_before_it_is_complete_stops_when_it_is() -> None:
    told = Told()
    await told.say("a", b"1", complete=False)
    told.slots(3)
    assert (told.stopped, told.dry) == ([], 2)
    told.playout.complete("a")
    assert told.stopped == ["a"]
    assert told.playout.clear() == ()


async def test_an_answer_without_sound_neither_starts_nor_stops() -> None:
    told = Told()
    await told.say("a")
    assert told.slots(2) == [None, None]
    assert (told.started, told.stopped) == ([], [])


async def test_clearing_tells_what_was_played_and_bars_what_still_comes() -> None:
    told = Told()
    await told.say("a", *[b"x"] * 5, complete=False)
    await told.say("b", b"y")
    told.slots(3)
    assert told.playout.clear() == (Heard("a", "item_a", 60), Heard("b", "item_b", 0))
    await told.playout.put("a", b"stale")
    told.playout.complete("a")
    assert told.slots(2) == [None, None]
    assert told.stopped == []
    await told.say("c", b"z")
    assert told.slots(1) == [b"z"]


async def test_a_hold_loses_nothing() -> None:
    told = Told()
    await told.say("a", b"1", b"2", b"3")
    assert told.slots(1) == [b"1"]
    told.playout.hold()
    told.playout.hold()
    assert told.slots(2) == [None, None]
    told.playout.resume()
    assert told.slots(2) == [b"2", b"3"]


async def test_a_hold_that_nobody_ends_ends_by_itself() -> None:
    told = Told()
    await told.say("a", b"1")
    told.playout.hold()
    assert told.slots(MAX_HOLD_SLOTS + 1) == [None] * MAX_HOLD_SLOTS + [b"1"]


async def test_clearing_ends_a_hold() -> None:
    told = Told()
    told.playout.hold()
    told.playout.clear()
    await told.say("a", b"1")
    assert told.slots(1) == [b"1"]


async def test_the_sixth_minute_waits_for_room() -> None:
    told = Told()
    await told.say("a", *[b"x"] * MAX_PACKETS, complete=False)
    more = asyncio.create_task(told.playout.put("a", b"y"))
    await settle()
    assert not more.done()
    told.slots(1)
    await settle()
    assert more.done()


async def test_an_answer_without_sound_does_not_hold_up_one_that_fills_the_room() -> None:
    told = Told()
    told.playout.begin("a", "item_a")
    await told.say("b", *[b"x"] * MAX_PACKETS, complete=False)
    more = asyncio.create_task(told.playout.put("b", b"y"))
    assert told.slots(1) == [b"x"]
    await more
    assert told.slots(2) == [b"x", None]


async def test_clearing_frees_who_waits_for_room() -> None:
    told = Told()
    await told.say("a", *[b"x"] * MAX_PACKETS, complete=False)
    more = asyncio.create_task(told.playout.put("a", b"y"))
    await settle()
    told.playout.clear()
    await more
    assert told.slots(1) == [None]


async def test_what_was_not_heard_is_played_again_and_announced_again() -> None:
    told = Told()
    await told.say("a", b"1", b"2", b"3")
    await told.say("b", b"4", b"5")
    assert told.slots(4) == [b"1", b"2", b"3", b"4"]
    told.playout.rewind(2)
    assert told.playout.clear() == (Heard("a", "item_a", 40), Heard("b", "item_b", 0))


async def test_an_answer_goes_on_after_what_was_played_again() -> None:
    told = Told()
    await told.say("a", b"1", b"2", b"3")
    await told.say("b", b"4", b"5")
    told.slots(4)
    told.playout.rewind(3)
    assert told.slots(6) == [b"2", b"3", b"4", b"5", None, None]
    assert (told.started, told.stopped) == (["a", "b", "a", "b"], ["a", "a", "b"])


async def test_silence_between_is_not_played_again() -> None:
    told = Told()
    await told.say("a", b"1", b"2")
    told.slots(3)
    told.playout.hold()
    told.slots(2)
    told.playout.resume()
    told.playout.rewind(4)
    assert told.slots(2) == [b"2", None]


async def test_what_was_heard_once_is_not_played_again_by_a_second_rewinding() -> None:
    told = Told()
    await told.say("a", b"1", b"2", b"3")
    told.slots(2)
    told.playout.rewind(1)
    told.playout.rewind(500)
    assert told.slots(3) == [b"2", b"3", None]


async def test_three_seconds_at_most_are_played_again() -> None:
    told = Told()
    await told.say("a", *[number.to_bytes(2, "big") for number in range(300)])
    told.slots(300)
    told.playout.rewind(3_000)
    assert told.slots(1) == [(150).to_bytes(2, "big")]


async def test_nothing_comes_back_of_what_was_cleared() -> None:
    told = Told()
    await told.say("a", b"1", b"2")
    told.slots(1)
    told.playout.clear()
    told.playout.rewind(50)
    assert told.slots(2) == [None, None]


async def test_what_is_played_and_how_much_is_left() -> None:
    told = Told()
    assert told.playout.playing() is None
    await told.say("a", b"1", b"2", b"3")
    told.slots(1)
    assert told.playout.playing() == Playing("item_a", 20, 40)
    told.playout.hold()
    told.slots(3)
    assert told.playout.playing() == Playing("item_a", 20, 40)
    await told.say("b", b"4", complete=False)
    assert told.playout.playing() == Playing("item_a", 20, math.inf)
