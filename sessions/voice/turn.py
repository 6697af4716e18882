"""One turn of the user: what is known and asked about it."""

import asyncio

from sessions.voice.head_start import HeadStart
from sessions.voice.recognition import Recogniser


class Turn:
    """The user is speaking, or pausing. `start` is the first sample, padding included.

    `confirmed` is set when it is certain that the turn is one: at once, unless the agent had the floor.
    """

    def __init__(self, item_id: str, start: int) -> None:
        self.item_id = item_id
        self.start = start
        self.confirmed = asyncio.Event()
        self.recogniser: Recogniser | None = None
        """Of the present pause."""
        self.hint: asyncio.Task[None] | None = None
        self.beginning: asyncio.Task[HeadStart | None] | None = None
        self.question = Question()

    def forget_pause(self) -> None:
        """What was asked about the present pause is stale."""
        if self.recogniser is not None:
            self.recogniser.cancel()
            self.recogniser = None
        self.question.withdraw()
        self.forget_hint()
        self.forget_head_start()

    def forget_hint(self) -> None:
        if self.hint is not None:
            self.hint.cancel()
            self.hint = None

    def forget_head_start(self) -> None:
        beginning, self.beginning = self.beginning, None
        if beginning is None or beginning.cancel():
            return
        if not beginning.cancelled() and (head_start := beginning.result()) is not None:
            head_start.drop()

    async def take_head_start(self) -> HeadStart | None:
        """From here on it is the caller's to drop."""
        beginning, self.beginning = self.beginning, None
        return None if beginning is None else await beginning


class Question:
    """Which words a turn that is not confirmed consists of so far. May be asked again."""

    def __init__(self) -> None:
        self.waiting: asyncio.Task[None] | None = None
        self.failed = False
        self.voiced_ms = 0
        """How much of the turn's voice was asked about."""
        self._since_ms: int | None = None

    def asked(self, waiting: asyncio.Task[None], voiced_ms: int, now_ms: int) -> None:
        self.waiting = waiting
        self.voiced_ms = voiced_ms
        if self._since_ms is None:
            self._since_ms = now_ms

    def answered(self, failed: bool) -> None:
        self.waiting = self._since_ms = None
        self.failed = failed

    def withdraw(self) -> None:
        """The turn has gone on. Whoever waits since the first question that got no answer still does."""
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def waited_ms(self, now_ms: int) -> int:
        return 0 if self._since_ms is None else now_ms - self._since_ms
