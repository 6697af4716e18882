"""A model that raises for a batch, above all for want of memory."""

import weakref
from collections.abc import Sequence
from typing import cast

from engines.messages.to_gateway import ErrorKind, Failed
from engines.models import GenerationModel, InvalidInput, Produced
from engines.payloads import Payload
from engines.worker.model_calls import run_batch
from fakes.echoing import EchoingModel
from fakes.worker_bench import Bench


class Block:
    """What a model allocates on its device."""


class Narrow(EchoingModel):
    """Has room for one block at a time. Each input needs one, `big` two."""

    def __init__(self) -> None:
        self._blocks: weakref.WeakSet[Block] = weakref.WeakSet()

    def run(self, batch: Sequence[tuple[object, Payload]]) -> list[list[Produced] | InvalidInput]:
        blocks = [self._allocated() for _ in batch]
        if "big" in [payload.text for _, payload in batch]:
            blocks.append(self._allocated())
        return super().run(batch)

    def _allocated(self) -> Block:
        if self._blocks:
            raise MemoryError("no room for another block")
        block = Block()
        self._blocks.add(block)
        return block


def test_who_needs_too_much_memory_fails_alone_and_holds_none_of_it_while_the_others_are_tried_again() -> None:
    batch: list[tuple[object, Payload]] = [(None, Payload(text)) for text in ("small", "big", "tiny")]
    narrow = cast("GenerationModel[object]", Narrow())
    small, big, tiny = run_batch(narrow, batch).outcomes
    assert (small, tiny) == ([Produced(Payload("small"))], [Produced(Payload("tiny"))])
    assert isinstance(big, MemoryError)


async def test_the_worker_lives_on(bench: Bench) -> None:
    bench.models["blobs"] = Narrow()
    gateway = await bench.gateway()
    for name in ("big", "small"):
        gateway.submit(name, "blobs")
        gateway.push(name, name, stage="blobs", final=True)
    failed = await gateway.next(Failed)
    assert (failed.request_id, failed.kind) == ("big", ErrorKind.ENGINE)
    assert failed.message == "MemoryError: no room for another block"
    assert await gateway.texts("small") == ["small", ""]
