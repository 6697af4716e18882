"""The watch on a loop whose time the test moves: timers are taken from it instead of waited for."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from engines.worker.progress_watch import ProgressWatch

ENDLESS_S = 3_600.0


def pending(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.TimerHandle]:
    """Every timer that is set from here on, newest last."""
    loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    call_later = loop.call_later

    def remembered(*args: object) -> asyncio.TimerHandle:
        timers.append(call_later(*args))  # pyright: ignore[reportArgumentType] (passed through)
        return timers[-1]

    monkeypatch.setattr(loop, "call_later", remembered)
    return timers


async def test_every_answer_starts_the_time_anew_and_the_last_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    timers, watch = pending(monkeypatch), ProgressWatch(ENDLESS_S)
    with watch.waiting():
        assert len(timers) == 1
        with watch.waiting():
            assert len(timers) == 1
        assert [timer.cancelled() for timer in timers] == [True, False]
    assert all(timer.cancelled() for timer in timers)
    assert not watch.hung.is_set()


async def test_giving_up_the_wait_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    timers, watch = pending(monkeypatch), ProgressWatch(ENDLESS_S)
    with watch.waiting():
        with pytest.raises(KeyError), watch.waiting():
            raise KeyError
        assert [timer.cancelled() for timer in timers] == [False]


async def test_who_has_an_answer_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    timers, watch = pending(monkeypatch), ProgressWatch(ENDLESS_S)

    async def answers() -> AsyncGenerator[int]:
        yield 1
        yield 2

    heard: list[int] = []
    async for answer in watch.each(answers()):
        heard.append(answer)
        assert all(timer.cancelled() for timer in timers)
    assert heard == [1, 2]
    assert all(timer.cancelled() for timer in timers)
