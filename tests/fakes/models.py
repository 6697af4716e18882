"""Scripted models for the engines: what an input's text says is what they do."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Hashable, Sequence
from pathlib import Path
from typing import TypeVar

from engines.messages.framing import MAX_FRAME_BYTES
from engines.models import InvalidInput, Produced
from engines.models.text import ModelDied, TextDelta
from engines.parameters import Activity, Generation, Message, Parameters
from engines.payloads import Payload

T = TypeVar("T")


MEDIA_TIMES = {"ahead": 60.0}
"""Where in its stream, in seconds, the chunk of an input begins."""


class ScriptedModel:
    """Echoes text and keeps nothing of a request.

    `raise` and `invalid` fail, `many` gives three chunks, `silent` none, `huge` one that fits no frame.

    The attribute `key` is the batch key.

    `hold` makes steps hang until `release`. `batches` lists the texts of every call of `run`.
    """

    units = "texts"

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.batches: list[list[str]] = []
        self.opened = 0
        self.closed = 0
        self.threads: set[str] = set()
        self._loop = loop
        self._began: asyncio.Queue[list[str]] = asyncio.Queue()
        self._closed: asyncio.Queue[None] = asyncio.Queue()
        self._free = threading.Event()
        self._free.set()

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "ScriptedModel":
        if options.get("broken"):
            raise FileNotFoundError(f"{directory} holds no weights")
        return cls()

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    async def step_begins(self) -> list[str]:
        """The texts of the next call of `run`, as soon as it has begun."""
        return await self._began.get()

    async def closes(self) -> None:
        """Returns once for every call of `close`."""
        await self._closed.get()

    def warm_up(self) -> None: ...

    def open(self, parameters: Parameters) -> list[str]:
        self.threads.add(threading.current_thread().name)
        if parameters != Activity():
            raise InvalidInput("with_audio: expected false, got true")
        self.opened += 1
        return []

    def reset(self, state: object) -> None: ...

    def snapshot(self, state: object) -> Payload:
        return Payload()

    def restore(self, parameters: Parameters, snapshot: Payload) -> list[str]:
        return self.open(parameters)

    def batch_key(self, state: object, payload: Payload) -> Hashable:
        if payload.text == "keyless":
            raise InvalidInput("key: expected one, got none")
        return payload.attributes.get("key", "")

    def run(self, batch: Sequence[tuple[object, Payload]]) -> list[list[Produced] | InvalidInput]:
        texts = [payload.text for _, payload in batch]
        self.threads.add(threading.current_thread().name)
        self.batches.append(texts)
        self._tell(self._began, texts)
        self._free.wait()
        if "raise" in texts:
            raise RuntimeError("scripted")
        return [self._row(text) for text in texts]

    def flush(self, state: object) -> list[Produced]:
        return []

    def close(self, state: object) -> None:
        self.threads.add(threading.current_thread().name)
        self.closed += 1
        self._tell(self._closed, None)

    def _tell(self, queue: asyncio.Queue[T], item: T) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(queue.put_nowait, item)

    def _row(self, text: str) -> list[Produced] | InvalidInput:
        if text == "invalid":
            return InvalidInput("text: expected something else, got 'invalid'")
        count = {"many": 3, "silent": 0}.get(text, 1)
        text = "x" * MAX_FRAME_BYTES if text == "huge" else text
        return [Produced(Payload(text), pts=MEDIA_TIMES.get(text, 0.0), units=1) for _ in range(count)]


class ScriptedTextModel:
    """Answers with the words of the last message, one a delta. The word `raise` raises, `die` kills the model, `wait` waits.

    `produced` counts deltas; `aborted` counts answers that were closed before their end.
    """

    def __init__(self) -> None:
        self.conversations: list[list[Message]] = []
        self.produced = 0
        self.aborted = 0
        self._dead = asyncio.Event()

    async def warm_up(self) -> None: ...

    async def ending(self, messages: Sequence[Message]) -> float:
        """More words, more finished."""
        self.conversations.append(list(messages))
        return -1.0 / len(messages[-1].content.split())

    async def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        self.conversations.append(list(messages))
        words = messages[-1].content.split()
        if len(words) > 100:
            raise InvalidInput(f"messages: expected fewer than 100 tokens, got {len(words)}")
        try:
            for count, word in enumerate(words, start=1):
                await self._obey(word)
                self.produced += 1
                last = "stop" if count == len(words) else ""
                yield TextDelta(word, prompt_tokens=10, cached_tokens=4, completion_tokens=count, finish_reason=last)
        except (GeneratorExit, asyncio.CancelledError):
            self.aborted += 1
            raise

    async def died(self) -> None:
        await self._dead.wait()

    def shutdown(self) -> None: ...

    async def _obey(self, word: str) -> None:
        await asyncio.sleep(0)
        if word == "raise":
            raise RuntimeError("scripted")
        if word == "die":
            self._dead.set()
            raise ModelDied("scripted")
        if word == "wait":
            await asyncio.Event().wait()
