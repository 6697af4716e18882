"""What a client is told that has come back."""

from collections.abc import Sequence
from itertools import accumulate, takewhile

import msgspec

from realtime.openai_realtime.server_events import Object, Resync
from realtime.openai_realtime.translation import shown_item
from sessions.voice.items import Item

MAX_ITEMS_BYTES = 128 << 10
"""Of items as JSON. A data channel of Chromium takes messages of 256 KiB, and the session object may be long, too."""


def resync(items: Sequence[Item], response_id: str | None) -> Resync:
    """The newest items, as many as fit."""
    shown = [shown_item(item) for item in items]
    sizes = accumulate(len(msgspec.json.encode(item)) for item in reversed(shown))
    count = len(list(takewhile(lambda size: size <= MAX_ITEMS_BYTES, sizes)))
    newest: Sequence[Object] = shown[len(shown) - count :]
    return Resync(tuple(newest), response_id)
