"""The watch on a loop whose time the test moves."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from engines.worker.progress_watch import ProgressWatch

LIMIT_S = 20.0


class Time:
    """Stands in for the clock and the timers of the running loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now_s)
        monkeypatch.setattr(loop, "call_at", self._call_at)

    def _call_at(self, when: float, callback: Callable[[], None]) -> object:
        self.timers.append((when, callback))
        return object()

    def passes(self, seconds: float) -> None:
        until = self.now_s + seconds
        while due := [timer for timer in self.timers if timer[0] <= until]:
            self.timers.remove(due[0])
            self.now_s = due[0][0]
            due[0][1]()
        self.now_s = until


@pytest.fixture
async def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


async def test_a_model_that_says_nothing_so_long_has_hung(time: Time) -> None:
    watch = ProgressWatch(LIMIT_S)
    with watch.waiting():
        time.passes(LIMIT_S - 0.1)
        assert not watch.hung.is_set()
        time.passes(0.1)
        assert watch.hung.is_set()


async def test_every_answer_starts_the_time_anew_whoever_waited_for_it(time: Time) -> None:
    watch = ProgressWatch(LIMIT_S)
    with watch.waiting():
        for _ in range(5):
            with watch.waiting():
                time.passes(LIMIT_S - 0.1)
        assert not watch.hung.is_set()
        time.passes(LIMIT_S - 0.1)
        assert not watch.hung.is_set()
        time.passes(0.1)
        assert watch.hung.is_set()


async def test_giving_up_the_wait_is_no_answer(time: Time) -> None:
    watch = ProgressWatch(LIMIT_S)
    with watch.waiting():
        time.passes(LIMIT_S - 0.1)
        with pytest.raises(KeyError), watch.waiting():
            raise KeyError
        time.passes(0.1)
        assert watch.hung.is_set()


async def test_time_in_which_nobody_waits_does_not_count(time: Time) -> None:
    watch = ProgressWatch(LIMIT_S)
    with watch.waiting():
        pass
    time.passes(3 * LIMIT_S)
    assert time.timers == []
    with watch.waiting():
        time.passes(LIMIT_S - 0.1)
    time.passes(LIMIT_S)
    assert not watch.hung.is_set()


async def test_answers_are_watched_but_not_what_is_done_with_them(time: Time) -> None:
    watch = ProgressWatch(LIMIT_S)

    async def answers() -> AsyncGenerator[int]:
        for answer in (1, 2):
            time.passes(LIMIT_S - 0.1)
            yield answer
        time.passes(LIMIT_S)

    heard: list[int] = []
    async for answer in watch.each(answers()):
        heard.append(answer)
        time.passes(2 * LIMIT_S)
        assert not watch.hung.is_set()
    assert heard == [1, 2]
    assert watch.hung.is_set()


async def test_an_answer_of_a_stream_is_a_sign_of_life_for_all(time: Time) -> None:
    watch = ProgressWatch(LIMIT_S)

    async def answers() -> AsyncGenerator[int]:
        for answer in range(5):
            time.passes(LIMIT_S - 0.1)
            yield answer

    with watch.waiting():
        async for _ in watch.each(answers()):
            pass
        assert not watch.hung.is_set()
        time.passes(LIMIT_S)
        assert watch.hung.is_set()


async def test_one_timer_serves_any_number_of_answers(time: Time) -> None:
    watch = ProgressWatch(LIMIT_S)
    for _ in range(100):
        with watch.waiting():
            time.passes(0.01)
    assert len(time.timers) == 1
