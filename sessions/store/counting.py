"""Records as the store counts them, and back: the same for every store."""

from collections.abc import Mapping

from sessions.store.amounts import PARTS, cost_of, counted, microseconds, share_size, told
from sessions.store.memory_nodes import Told
from sessions.store.memory_tickets import Held
from sessions.store.memory_waiting import Wish
from sessions.store.records import Announcement, Ask, Ticket, Used
from sessions.store.session_limits import checked_id


def told_by(node: Announcement) -> Told:
    """Raises ValueError."""
    return Told(
        node=node.node,
        host=node.host,
        address=node.address,
        ready=node.ready,
        draining=node.draining,
        capacity=counted(node.capacity, "capacity"),
        reserve=counted(node.reserve, "reserve"),
        lease_us=microseconds(node.lease_s, "lease_s"),
        return_us=microseconds(node.return_s, "return_s"),
        grace_us=microseconds(node.grace_s, "grace_s"),
    )


def wish_of(ask: Ask) -> Wish:
    """Raises ValueError."""
    return Wish(
        session_id=checked_id(ask.session_id),
        tenant=ask.tenant,
        kind=ask.kind,
        node=ask.node,
        cost=cost_of(ask.cost),
        quota=dict(counted(ask.quota, "quota")),
        priority=ask.priority,
        size=share_size(ask.weight),
        life_us=microseconds(ask.life_s, "life_s"),
        may_wait=ask.may_wait,
        place_us=microseconds(ask.place_s, "place_s"),
        longest_queue=ask.longest_queue,
        longest_wait_us=microseconds(ask.longest_wait_s, "longest_wait_s"),
    )


def claimed_by(node: str, ticket: Ticket, now_us: int) -> Held:
    """Raises ValueError."""
    life_us = microseconds(ticket.life_s, "life_s")
    return Held(
        session_id=checked_id(ticket.session_id),
        tenant=ticket.tenant,
        kind=ticket.kind,
        node=node,
        cost=cost_of(ticket.cost),
        number=ticket.number,
        ends_us=now_us + life_us,
        ran=True,
    )


def ticket_of(wish: Wish, number: int, life_us: int) -> Ticket:
    return Ticket(
        session_id=wish.session_id,
        tenant=wish.tenant,
        kind=wish.kind,
        node=wish.node,
        cost=told(wish.cost),
        number=number,
        life_s=life_us / 1e6,
    )


def resources_of(used: Mapping[str, int], capacity: Mapping[str, int]) -> dict[str, Used]:
    """Of a Census."""
    names = sorted(used.keys() | capacity.keys())
    return {name: Used(used.get(name, 0) / PARTS, capacity.get(name, 0) / PARTS) for name in names}
