"""What an operator orders: how the nodes are, one of them away, all of them anew."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from realtime.front.messages import Answer, Drain, Look, Restart, ToFront, Told

READY_LIMIT_S = 60.0
"""For a node that starts; its workers run already."""


class Operated(Protocol):
    """A node, as far as it is ordered about: see SupervisedNode."""

    @property
    def name(self) -> str: ...
    @property
    def is_ready(self) -> bool: ...
    def told(self) -> Told: ...
    async def restart(self, ready_limit_s: float) -> None: ...
    async def stop(self) -> None: ...


class Operation:
    """One order at a time changes anything."""

    def __init__(self, nodes: Sequence[Operated], ready_limit_s: float = READY_LIMIT_S) -> None:
        self._nodes = nodes
        self._ready_limit_s = ready_limit_s
        self._changing = asyncio.Lock()

    async def obey(self, order: ToFront) -> AsyncIterator[Answer]:
        match order:
            case Look():
                yield self._answer(done=True)
            case Drain(name) | Restart(name) if self._changing.locked():
                yield self._answer(done=True, fault=f"another order is being carried out; {name or 'this one'} has to wait")
            case Drain(name) | Restart(name):
                async with self._changing:
                    async for answer in self._change(order, self._named(name)):
                        yield answer

    async def _change(self, order: Drain | Restart, chosen: Sequence[Operated]) -> AsyncIterator[Answer]:
        if not chosen:
            known = ", ".join(node.name for node in self._nodes)
            yield self._answer(done=True, fault=f"node: expected one of {known}, got {order.node!r}")
            return
        for node in chosen:
            if not any(other.is_ready for other in self._nodes if other is not node):
                fault = f"{node.name} stays: no other node is ready to take its sessions"
                yield self._answer(done=True, fault=fault)
                return
            yield self._answer(f"{node.name} drains")
            if isinstance(order, Drain):
                await node.stop()
                yield self._answer(f"{node.name} has ended")
                continue
            try:
                await node.restart(self._ready_limit_s)
            except TimeoutError:
                fault = f"{node.name} is not ready again; its log tells why. The others stay as they are"
                yield self._answer(done=True, fault=fault)
                return
            yield self._answer(f"{node.name} is ready again")
        yield self._answer(done=True)

    def _named(self, name: str) -> Sequence[Operated]:
        return [node for node in self._nodes if name in ("", node.name)]

    def _answer(self, said: str = "", *, done: bool = False, fault: str = "") -> Answer:
        return Answer(tuple(node.told() for node in self._nodes), said, done, fault)
