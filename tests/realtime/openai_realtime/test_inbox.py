import asyncio

import pytest

from realtime.openai_realtime import inbox
from realtime.openai_realtime.inbox import Inbox


@pytest.mark.parametrize(("limit", "value"), [("MAX_BYTES", 8), ("MAX_MESSAGES", 2)])
async def test_a_full_inbox_blocks_its_reader_until_there_is_room(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(inbox, limit, value)
    full = Inbox()
    await full.put(b"four")
    await full.put(b"four")
    waiting = asyncio.create_task(full.put(b"last"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    assert await full.get() == b"four"
    await waiting
    assert [await full.get(), await full.get()] == [b"four", b"last"]
