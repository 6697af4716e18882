"""A session that has to go is put down between two turns."""

import pytest

from sessions.voice.draining import put_down_between_turns


class Talk:
    """Somebody talks until the clock says `until_s`; `put_down_at` is when it was put down."""

    def __init__(self, until_s: float) -> None:
        self.now_s = 100.0
        self.until_s = self.now_s + until_s
        self.put_down_at: float | None = None

    @property
    def is_between_turns(self) -> bool:
        return self.now_s >= self.until_s

    async def put_down(self) -> None:
        self.put_down_at = self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    async def drained_after_s(self, limit_s: float) -> float:
        began_s = self.now_s
        await put_down_between_turns(self, limit_s, lambda: self.now_s, self.sleep)
        assert self.put_down_at is not None
        return self.put_down_at - began_s


async def test_where_nobody_says_anything_it_goes_as_soon_as_that_can_have_been_told() -> None:
    assert 0.0 < await Talk(0.0).drained_after_s(30.0) < 0.2


async def test_what_is_being_said_comes_to_its_end() -> None:
    assert await Talk(5.0).drained_after_s(30.0) == pytest.approx(5.0, abs=0.2)


async def test_who_never_ends_is_cut_off_in_the_end() -> None:
    assert await Talk(1_000.0).drained_after_s(30.0) == pytest.approx(30.0, abs=0.2)
