"""Work beside the loop that nobody waits for any more."""

import asyncio
import gc
import threading

import pytest

from sessions.jobs.in_thread import to_its_end


@pytest.mark.parametrize("fails", [False, True])
async def test_who_is_cancelled_waits_for_the_end_and_nobody_complains_of_it(fails: bool) -> None:
    began, may_end = asyncio.Event(), threading.Event()
    loop, ended, complaints = asyncio.get_running_loop(), list[bool](), list[object]()
    loop.set_exception_handler(lambda _loop, context: complaints.append(context["message"]))

    def work() -> None:
        loop.call_soon_threadsafe(began.set)
        may_end.wait(5)
        ended.append(True)
        if fails:
            raise FileNotFoundError("the file has been deleted meanwhile")

    working = asyncio.create_task(to_its_end(work))
    await began.wait()
    working.cancel()
    await asyncio.sleep(0)
    assert not working.done()
    may_end.set()
    await asyncio.wait((working,))
    assert (working.cancelled(), ended) == (True, [True])
    del working  # with all that hangs on it
    gc.collect()
    assert complaints == []
