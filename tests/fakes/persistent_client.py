"""A client that is cut off and comes back until it has had its whole conversation. It says again what may have been lost."""

import socket
import struct
from collections.abc import Callable
from typing import Any, cast

import aiohttp

from strict_client import Event, StrictClient

SOUND = "response.output_audio.delta"
Step = tuple[tuple[str, dict[str, Any]], ...]
"""What is said together, before the next `end` is waited for."""


def said(text: str, **response: Any) -> Step:
    """A question, and the wish to have it answered."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return (("conversation.item.create", {"item": item}), ("response.create", {"response": response}))


UPDATE: Step = (("session.update", {"session": {"type": "realtime", "instructions": "Sing."}}),)
ENDS = {"session.update": "session.updated", "response.create": "response.done"}


class PersistentClient:
    """Talks by `steps`. `cut(n)` says whether the connection is lost after its n-th event; `url` where it comes back then."""

    def __init__(self, steps: tuple[Step, ...], url: Callable[[int], str], cut: Callable[[int], bool]) -> None:
        self.events: list[Event] = []
        """All but the greetings of connections, sound included."""
        self.greetings: list[Event] = []
        self.returns = 0
        self._steps = steps
        self._url = url
        self._cut = cut
        self._step = 0

    async def talk(self) -> None:
        while self._step < len(self._steps):
            async with aiohttp.ClientSession() as http:
                await self._connected(http)
                self.returns += 1

    @property
    def told(self) -> list[Event]:
        return [event for event in self.events if event["type"] != SOUND]

    @property
    def numbers(self) -> list[int]:
        return [number(event) for event in self.events]

    async def _connected(self, http: aiohttp.ClientSession) -> None:
        query = ""
        if self.greetings:
            newest = max([*self.numbers, number(self.greetings[0])])
            query = f"?resume={self.greetings[-1]['resume']['token']}&last_seq={newest}"
        async with http.ws_connect(f"{self._url(self.returns)}/v1/realtime{query}", max_msg_size=0) as opened:
            client = StrictClient(opened)
            self.greetings.append(await client.until("session.created"))
            await self._go_on(client)
            if self._step < len(self._steps):
                transport = opened.get_extra_info("socket")
                transport.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                assert http.connector is not None
                await http.connector.close()

    async def _go_on(self, client: StrictClient) -> None:
        """Until it is cut off, or all has been said and answered."""
        while self._step < len(self._steps):
            step = self._steps[self._step]
            for place, (kind, fields) in enumerate(step):
                await client.send(kind, event_id=f"step_{self._step}_{place}", **fields)
            end = ENDS[step[-1][0]]
            while True:
                event = await client.next()
                self.events.append(event)
                over = event["type"] == end
                self._step += over
                if self._cut(len(self.events)):
                    return
                if over:
                    break


def number(event: Event) -> int:
    return int(event["event_id"].rpartition("_")[2])


def plain(events: list[Event]) -> list[Event]:
    """Without what differs from one run to the next: ids are named by their order, and times are left out."""
    names: dict[str, str] = {}

    def name(value: Any) -> Any:
        match value:
            case dict():
                fields = cast("dict[str, Any]", value)
                return {key: name(each) for key, each in fields.items() if key not in ("metrics", "resume", "event_id")}
            case list():
                return [name(each) for each in cast("list[Any]", value)]
            case str() if value.startswith(("item_", "resp_", "sess_", "conv_")):
                return names.setdefault(value, f"{value[:4]}{len(names)}")
            case _:
                return value

    return [name(event) for event in events]
