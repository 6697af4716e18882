"""How much of what was sent may have reached nobody, and when the client is asked about it."""

import pytest

from realtime.media.call_codecs import Voice
from realtime.webrtc.outlet import ASK_SLOTS, SLOT_S, Outlet
from realtime.webrtc.playout import Playout


class Listener:
    """A client that says nothing by itself and answers a question `answers_after` slots later, if at all."""

    def __init__(self, answers_after: int | None) -> None:
        self.asked = 0
        self.outlet = Outlet(Voice, lambda: self._silent_s, self._ask)
        self._answers_after = answers_after
        self._answers: list[int] = []
        self._silent_s = 0.0
        self._slot = 0

    def _ask(self) -> None:
        self.asked += 1
        if self._answers_after is not None:
            self._answers.append(self._slot + self._answers_after)

    def spend(self, slots: int) -> int:
        """The most that was in doubt in one of them."""
        most = 0
        for _ in range(slots):
            self._slot += 1
            self._silent_s += SLOT_S
            if self._answers and self._answers[0] <= self._slot:
                del self._answers[0]
                self._silent_s = 0.0
            self.outlet.next()
            most = max(most, self.outlet.unheard_slots)
        return most


async def playing(slots: int) -> Playout:
    playout = Playout(lambda name: None, lambda name: None, lambda: None)
    playout.begin("a", "item_a")
    for _ in range(slots):
        await playout.put("a", b"sound")
    return playout


@pytest.mark.parametrize("answers_after", [1, 3, 5])
async def test_a_client_that_answers_is_in_doubt_for_the_time_of_a_question(answers_after: int) -> None:
    listener = Listener(answers_after)
    listener.outlet.playout = await playing(500)
    assert listener.spend(500) <= ASK_SLOTS + answers_after
    assert 500 / (ASK_SLOTS + answers_after) - 1 <= listener.asked <= 500 / ASK_SLOTS


async def test_one_that_does_not_is_in_doubt_all_the_time() -> None:
    listener = Listener(answers_after=None)
    listener.outlet.playout = await playing(100)
    assert listener.spend(100) == 100


async def test_nobody_is_asked_while_there_is_nothing_to_hear() -> None:
    listener = Listener(answers_after=1)
    listener.spend(100)
    listener.outlet.playout = await playing(0)
    listener.spend(100)
    assert listener.asked == 0


async def test_whoever_may_not_speak_for_a_session_sends_none_of_its_sound() -> None:
    outlet = Listener(None).outlet
    outlet.playout = playout = Playout(lambda _: None, lambda _: None, lambda: None)
    playout.begin("resp_1", "item_1")
    await playout.put("resp_1", b"sound")
    muted = True
    outlet.muted = lambda: muted
    assert outlet.next() is None
    muted = False
    assert outlet.next() == b"sound"
