"""Work that others may end."""

import asyncio
from typing import NoReturn

import pytest

from realtime.together import unless


async def never() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError


async def fail(why: str) -> NoReturn:
    await asyncio.sleep(0)
    raise LookupError(why)


async def give() -> int:
    await asyncio.sleep(0)
    return 5


async def test_what_ends_the_work_is_raised_and_the_work_is_cancelled() -> None:
    before = asyncio.all_tasks()
    with pytest.raises(LookupError, match="end"):
        await unless(never(), never(), fail("end"))
    assert asyncio.all_tasks() == before


async def test_work_that_nobody_ends_returns_or_raises_its_own() -> None:
    before = asyncio.all_tasks()
    assert await unless(give(), never(), never()) == 5
    with pytest.raises(LookupError, match="work"):
        await unless(fail("work"), never())
    assert asyncio.all_tasks() == before
