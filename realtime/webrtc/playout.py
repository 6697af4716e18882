"""What is played, slot by slot: the packets of answers, one answer after the other. No clock and no tasks."""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from realtime.media.opus_frames import FRAME_MS
from sessions.voice.playout import SILENT_DB, Heard, Playing

MAX_PACKETS = 15_000
"""Five minutes of speech, some 1.5 MB. Overflow policy: block; the answer then stops taking sound, and its engines stop."""
MAX_HOLD_SLOTS = 100
"""Whoever holds confirms or denies; a hold that nobody has ended after two seconds ends by itself."""
LEVEL_SLOTS = 100
KEPT_SLOTS = 150
"""A client is lost after 2.4 s without a sign of life; what was sent to it meanwhile can be played again, 1 MB in 100 calls."""


class _Answer:
    def __init__(self, item_id: str) -> None:
        self.item_id = item_id
        self.packets: deque[bytes] = deque()
        self.levels: deque[float] = deque()
        self.played = 0
        self.announced = False
        self.complete = False


class _Played(NamedTuple):
    """One slot. `number` counts the packets of its answer from 0."""

    response_id: str
    item_id: str
    number: int
    packet: bytes
    level: float


class Playout:
    """`started` and `stopped` are told the id of an answer when its first packet is taken and when its last one has been; `dry`
    is told of each slot in between for which there is no sound yet. What is played again is told again."""

    def __init__(self, started: Callable[[str], None], stopped: Callable[[str], None], dry: Callable[[], None]) -> None:
        self._started = started
        self._stopped = stopped
        self._dry = dry
        self._answers: OrderedDict[str, _Answer] = OrderedDict()
        self._waiting = 0
        self._room = asyncio.Event()
        self._room.set()
        self._held_slots: int | None = None
        self._levels: deque[float] = deque(maxlen=LEVEL_SLOTS)
        self._played: deque[_Played | None] = deque(maxlen=KEPT_SLOTS)

    @property
    def has_floor(self) -> bool:
        return bool(self._answers)

    def playing(self) -> Playing | None:
        answer = next(iter(self._answers.values()), None)
        if answer is None:
            return None
        is_all = all(each.complete for each in self._answers.values())
        return Playing(answer.item_id, answer.played * FRAME_MS, self._waiting * FRAME_MS if is_all else math.inf)

    def begin(self, response_id: str, item_id: str) -> None:
        self._answers[response_id] = _Answer(item_id)

    def expect(self, response_id: str, levels: Sequence[float]) -> None:
        """How loud the answer's next packets will be, in dBFS, a packet each."""
        answer = self._answers.get(response_id)
        if answer is not None:
            answer.levels += levels

    async def put(self, response_id: str, packet: bytes) -> None:
        """Waits for room. A packet of an answer that was cleared is dropped."""
        while self._waiting >= MAX_PACKETS and response_id in self._answers:
            self._room.clear()
            await self._room.wait()
        answer = self._answers.get(response_id)
        if answer is not None:
            answer.packets.append(packet)
            self._waiting += 1

    def complete(self, response_id: str) -> None:
        """There are no more packets of this answer."""
        answer = self._answers.get(response_id)
        if answer is not None:
            answer.complete = True
            self._leave_if_over(response_id, answer)

    def next(self) -> bytes | None:
        """The packet of this slot; None: silence."""
        played = self._next()
        self._played.append(played)
        self._levels.append(SILENT_DB if played is None else played.level)
        return None if played is None else played.packet

    def _next(self) -> _Played | None:
        if self._held():
            return None
        response_id, answer = next(iter(self._in_turn()), ("", None))
        if answer is None:
            return None
        if not answer.packets:
            if answer.played:
                self._dry()
            return None
        if not answer.announced:
            answer.announced = True
            self._started(response_id)
        level = answer.levels.popleft() if answer.levels else SILENT_DB
        played = _Played(response_id, answer.item_id, answer.played, answer.packets.popleft(), level)
        answer.played += 1
        self._waiting -= 1
        self._room.set()
        self._leave_if_over(response_id, answer)
        return played

    def rewind(self, slots: int) -> None:
        """What was played in the last so many, three seconds at most, was never heard: it is played again, unless it was
        cleared. All before that was heard."""
        for answer in self._answers.values():
            answer.announced = False
        for _ in range(min(slots, len(self._played))):
            if (played := self._played.pop()) is not None:
                self._take_back(played)
        self._played.clear()

    def _take_back(self, played: _Played) -> None:
        answer = self._answers.get(played.response_id)
        if answer is None:
            answer = self._answers[played.response_id] = _Answer(played.item_id)
            answer.complete = True
        self._answers.move_to_end(played.response_id, last=False)
        answer.packets.appendleft(played.packet)
        answer.levels.appendleft(played.level)
        answer.played = played.number
        self._waiting += 1

    def hold(self) -> None:
        if self._held_slots is None:
            self._held_slots = 0

    def resume(self) -> None:
        self._held_slots = None

    def clear(self) -> tuple[Heard, ...]:
        heard = tuple(
            Heard(response_id, answer.item_id, answer.played * FRAME_MS) for response_id, answer in self._answers.items()
        )
        self._answers.clear()
        self._played.clear()
        self._waiting = 0
        self._room.set()
        self.resume()
        return heard

    def levels(self) -> Sequence[float]:
        """In dBFS, of the last slots, the newest last."""
        return tuple(self._levels)

    def _in_turn(self) -> Iterable[tuple[str, _Answer]]:
        """The oldest answer first. When all room is taken, only those with sound: what the oldest lacks may wait for room."""
        answers = self._answers.items()
        return answers if self._waiting < MAX_PACKETS else [item for item in answers if item[1].packets]

    def _held(self) -> bool:
        if self._held_slots is None:
            return False
        self._held_slots += 1
        if self._held_slots > MAX_HOLD_SLOTS:
            self.resume()
            return False
        return True

    def _leave_if_over(self, response_id: str, answer: _Answer) -> None:
        if answer.complete and not answer.packets:
            del self._answers[response_id]
            if answer.announced:
                self._stopped(response_id)
