"""A client of fakes/repeating.py that comes back to its session with its token, and keeps count of what it hears: what was lost
on the way, what came twice, and what was meant for somebody else."""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp
import msgspec

Event = dict[str, Any]
AGAIN_S = 0.02
"""Between two tries."""


class Heard:
    """The words of this client's answers, by item, and what was wrong with them."""

    def __init__(self, name: str) -> None:
        self.texts: dict[str, str] = {}
        self.lost = self.duplicated = self.foreign = self.answers = 0
        self.last_seq = 0
        self.items = 0
        """Of the conversation, that are whole."""
        self._name = name
        self._ids: set[str] = set()
        self._under_way: set[str] = set()

    @property
    def words(self) -> int:
        return sum(len(text.split()) for text in self.texts.values())

    @property
    def is_answered(self) -> bool:
        """No answer is under way."""
        return not self._under_way

    def hear(self, event: Event) -> None:
        if event["event_id"] in self._ids:
            self.duplicated += 1
        self._ids.add(event["event_id"])
        self.last_seq = max(self.last_seq, int(event["event_id"].rpartition("_")[2]))
        match event["type"]:
            case "response.output_text.delta":
                self._add(event["item_id"], event["delta"])
            case "response.output_text.done":
                self._compare(event["item_id"], event["text"])
            case "response.created":
                self._under_way.add(event["response"]["id"])
            case "response.done":
                self._under_way.discard(event["response"]["id"])
                self.answers += 1
            case "conversation.item.done":
                self.items += 1
            case _:
                pass

    def begin_with(self, items: Sequence[Event]) -> None:
        """What it missed is told as it is now."""
        for item in items:
            if item["role"] == "assistant":
                self.texts[item["id"]] = "".join(part["text"] for part in item["content"])

    def _add(self, item_id: str, words: str) -> None:
        before = self.texts.get(item_id, "")
        self.texts[item_id] = before + words
        for number, word in enumerate(words.split(), len(before.split()) + 1):
            name, _, said = word.rpartition(".")
            self.foreign += name != self._name
            self.lost += max(int(said) - number, 0)
            self.duplicated += max(number - int(said), 0)

    def _compare(self, item_id: str, whole: str) -> None:
        self.lost += max(len(whole.split()) - len(self.texts.get(item_id, "").split()), 0)


class FaithfulClient:
    """Says its name, and is answered by it. `url`, at each connection, is that of any node."""

    def __init__(self, http: aiohttp.ClientSession, name: str) -> None:
        self.http = http
        self.heard = Heard(name)
        self.session_id = ""
        self.resyncs = self.connections = 0
        self.broken_at = self.first_event_at = self.known_at = 0.0
        """By time.monotonic: the end of a connection; of the newest, when its session was there, or it was told its place in the
        waiting room."""
        self._asked = 0
        self._name = name
        self._token = ""
        self._happened = asyncio.Event()
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_broken(self) -> bool:
        return self._reading is not None and self._reading.done()

    async def connect(self, url: str) -> None:
        """The session is there: a new one, or this client's. Raises aiohttp.ClientError, and ConnectionError when the server
        hangs up."""
        back = {"resume": self._token, "last_seq": str(self.heard.last_seq)} if self._token else {}
        self._socket = await self.http.ws_connect(f"{url}/v1/realtime", params={"queue": "events", **back})
        created = await self._created(self._socket)
        self.session_id = created["session"]["id"]
        self._token = created["resume"]["token"]
        if "resync" in created:
            self.resyncs += 1
            self.heard.begin_with(created["resync"]["items"])
        self.connections += 1
        self._reading = asyncio.create_task(self._read(self._socket))
        self._reading.add_done_callback(lambda _: self._happened.set())

    async def come_back(self, url: str, longest_s: float = 30.0) -> None:
        """Tries until it is let in."""
        async with asyncio.timeout(longest_s):
            while True:
                try:
                    return await self.connect(url)
                except (aiohttp.ClientError, ConnectionError):
                    await asyncio.sleep(AGAIN_S)

    async def introduce(self) -> None:
        """It wants text, and says its name. Returns when the session has that."""
        await self._send({"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"]}})
        part = {"type": "input_text", "text": self._name}
        await self._send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [part]}})
        await self.until(lambda: self.heard.items > 0)

    async def ask(self) -> None:
        self._asked += 1
        await self._send({"type": "response.create"})

    async def all_answered(self) -> None:
        """Whatever became of the answers."""
        await self.until(lambda: self.heard.answers >= self._asked)

    async def hears(self, words: int) -> None:
        """So many more."""
        goal = self.heard.words + words
        await self.until(lambda: self.heard.words >= goal)

    async def until(self, holds: Callable[[], bool], longest_s: float = 30.0) -> None:
        """Asked again at each event."""
        async with asyncio.timeout(longest_s):
            while not holds():
                self._happened.clear()
                await self._happened.wait()

    async def drop(self) -> None:
        """As a cable that is pulled: nothing more is said."""
        assert self._socket is not None
        self._socket.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        await self.gone()

    async def gone(self) -> None:
        """When the connection has ended."""
        assert self._reading is not None
        await self._reading

    async def leave(self) -> None:
        assert self._socket is not None
        await self._socket.close()
        await self.gone()

    async def _created(self, connection: aiohttp.ClientWebSocketResponse) -> Event:
        async for message in connection:
            event = msgspec.json.decode(message.data, type=Event)
            if event["type"] == "session.created":
                self.first_event_at = self._knows()
                return event
            if event["type"] == "session.queued":
                self._knows()
        raise ConnectionError(f"the server hung up: {connection.close_code}")

    def _knows(self) -> float:
        self.known_at = time.monotonic()
        self._happened.set()
        return self.known_at

    async def _send(self, event: Event) -> None:
        assert self._socket is not None
        await self._socket.send_str(msgspec.json.encode(event).decode())

    async def _read(self, connection: aiohttp.ClientWebSocketResponse) -> None:
        async for message in connection:
            self.heard.hear(msgspec.json.decode(message.data, type=Event))
            self._happened.set()
        self.broken_at = time.monotonic()
