"""Which node a request belongs to."""

import logging
from collections.abc import Sequence
from typing import Protocol, TypeVar

from realtime.front.head import Wanted
from sessions.store.interface import StoreDown
from sessions.store.records import Owner

log = logging.getLogger(__name__)


class Candidate(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def is_ready(self) -> bool:
        """It takes new sessions."""
        ...

    @property
    def is_there(self) -> bool:
        """It answers, be it only for what it has already."""
        ...

    @property
    def load(self) -> int:
        """Sessions, and connections that it was given since it said how many it has."""
        ...


class Owners(Protocol):
    """Of the store."""

    async def owner(self, session_id: str) -> Owner | None: ...


C = TypeVar("C", bound=Candidate)


async def route(wanted: Wanted, nodes: Sequence[C], store: Owners) -> C | None:
    """Who wants a call or a picture goes to the node that has it, whoever comes back to the owner of the session, everybody else
    where least is going on. An owner that drains is about to give its sessions away: it is spared. None: no node is ready."""
    if wanted.node is not None and (has_call := _numbered(nodes, wanted.node)) is not None:
        return has_call
    if wanted.session_id is not None and (owner := await _owner(wanted.session_id, nodes, store)) is not None:
        return owner
    return least_loaded(nodes)


def least_loaded(nodes: Sequence[C]) -> C | None:
    return min((node for node in nodes if node.is_ready), key=lambda node: (node.load, node.number), default=None)


def _numbered(nodes: Sequence[C], number: int) -> C | None:
    return next((node for node in nodes if node.number == number and node.is_there), None)


async def _owner(session_id: str, nodes: Sequence[C], store: Owners) -> C | None:
    """None also while the store is down: any node says so in due form."""
    try:
        owner = await store.owner(session_id)
    except StoreDown as down:
        log.warning("where session %s belongs is not known: %s", session_id, down)
        return None
    return None if owner is None else next((node for node in nodes if node.name == owner.node and node.is_ready), None)
