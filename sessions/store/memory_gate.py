"""Admission, decided in memory: the model that the Functions of Redis are tested against."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sessions.store import admission_limits as limits
from sessions.store.memory_nodes import Told
from sessions.store.memory_seating import Seating
from sessions.store.memory_tickets import Held, Standing
from sessions.store.memory_waiting import Place, Wish
from sessions.store.records import Refusal, Refused, Waiting


class Gate:
    """Every method is one decision: first what has ended meanwhile ends, last what became free is given away. Times in µs."""

    def __init__(self, now_us: Callable[[], int], seating: Seating) -> None:
        self._seating = seating
        self._now_us = now_us

    # ── nodes

    def announce(self, told: Told, claimed: Sequence[Held]) -> tuple[str, ...]:
        """`claimed`: the tickets that it says to have. Returns the ids of those that are lost."""
        now_us, seating = self._begin(), self._seating
        before = seating.nodes.get(told.node)
        seating.nodes.tell(told, now_us)
        lost = tuple(held.session_id for held in claimed if not self._take_up(held, now_us))
        known = {held.session_id for held in claimed}
        for held in seating.tickets.of_node(told.node, Standing.LENT):
            if held.session_id in known:
                continue
            if before is None or before.died_us is None:
                seating.end(held, now_us, tell=False)
            else:
                self._leave_behind(held, before.died_us + before.told.return_us, before.died_us + before.told.grace_us)
        seating.freed = True
        seating.fill(now_us)
        return lost

    def renew(self, node: str, lease_us: int) -> tuple[bool, int]:
        """Whether it is known, and how many tickets it has."""
        now_us, nodes = self._begin(), self._seating.nodes
        known = nodes.living(node) is not None
        if known:
            nodes.renew(node, now_us + lease_us)
        return known, self._seating.tickets.counted(node)

    def node_gone(self, node: str) -> tuple[str, ...]:
        now_us = self._begin()
        self._seating.node_dies(node, now_us)
        return tuple(held.session_id for held in self._seating.tickets.of_node(node, Standing.LENT))

    # ── tickets

    def ask(self, wish: Wish) -> Held | Waiting | Refused:
        now_us, seating = self._begin(), self._seating
        held, place = seating.tickets.get(wish.session_id), seating.waiting.get(wish.session_id)
        alive = seating.nodes.living(wish.node) is not None
        if held is not None and alive and (held.node, held.cost) == (wish.node, wish.cost):
            return self._make_full(held, wish, place, now_us)
        refused = self._never(wish, place, now_us)
        if refused is not None:
            seating.leave(place)
            seating.fill(now_us)
            return refused
        return self._newcomer(wish, now_us) if place is None else self._wait_on(wish, place, now_us)

    def release(self, session_id: str, node: str) -> None:
        now_us, seating = self._begin(), self._seating
        held, place = seating.tickets.get(session_id), seating.waiting.get(session_id)
        if held is not None and held.node == node:
            seating.give_back(held, now_us)
        if place is not None and place.wish.node == node:
            seating.leave(place)
        seating.orphans.discard(session_id)
        seating.fill(now_us)

    def keep(self, session_id: str, node: str, keep_us: int, lend_us: int) -> bool:
        now_us, seating = self._begin(), self._seating
        held = seating.tickets.get(session_id)
        if held is None or held.node != node or held.offered_us is not None:
            return False
        held.kept_us = now_us + keep_us
        held.lend_us = now_us + lend_us
        held.left = False
        held.lent = held.lent and lend_us == 0
        seating.tickets.note(held)
        if lend_us == 0:
            seating.lend(held, now_us)
        seating.fill(now_us)
        return True

    def look(self) -> None:
        """Nothing else: so that what is seen is the present."""
        self._begin()

    def orphans(self, limit: int) -> tuple[str, ...]:
        now_us, orphans = self._begin(), self._seating.orphans
        taken = orphans.up_to(now_us, limit)
        for session_id in taken:
            orphans.put(session_id, now_us + limits.ORPHAN_AGAIN_S * 1_000_000)
        return tuple(taken)

    # ── steps

    def _begin(self) -> int:
        now_us = self._now_us()
        self._seating.end_due(now_us)
        self._seating.fill(now_us)
        return now_us

    def _take_up(self, claimed: Held, now_us: int) -> bool:
        """Whether its node has it."""
        seating = self._seating
        held = seating.tickets.get(claimed.session_id)
        if held is None:
            return seating.claim(claimed, now_us)
        if held.node != claimed.node or held.offered_us is not None:
            return False
        if held.left or (held.lent and held.kept_us is None):  # the node's death alone has done that
            held.fill()
            seating.tickets.note(held)
        return True

    def _leave_behind(self, held: Held, lend_us: int, end_us: int) -> None:
        """Its node came back from the dead without it, and its session may yet."""
        held.left = True
        held.kept_us = end_us if held.kept_us is None else min(held.kept_us, end_us)
        held.lend_us = lend_us if held.lend_us is None else min(held.lend_us, lend_us)
        self._seating.tickets.note(held)

    def _make_full(self, held: Held, wish: Wish, place: Place | None, now_us: int) -> Held:
        self._seating.leave(place)
        if not held.ran:
            held.ends_us = now_us + wish.life_us
        held.fill()
        self._seating.tickets.note(held)
        self._seating.fill(now_us)
        return held

    def _never(self, wish: Wish, place: Place | None, now_us: int) -> Refused | None:
        """Why it is of no use to wait."""
        seating = self._seating
        kept = seating.nodes.living(wish.node)
        if kept is None:
            return Refused(Refusal.SETTLING, "", limits.NO_NODE_RETRY_S) if place is None else None
        if kept.told.draining:
            return Refused(Refusal.DRAINING, "", limits.NO_NODE_RETRY_S)
        too_big = [name for name, parts in wish.cost if seating.pool.never(name, parts, wish.priority)]
        if too_big:
            return Refused(Refusal.TOO_BIG, too_big[0], 0)
        if place is not None:
            waited = now_us - place.since_us >= wish.longest_wait_us
            return self._not_now(Refusal.WAITED, wish, "") if waited else None
        lacking = {name: short for name, short in seating.lacks(wish).items() if name.startswith("tenant:")}
        if seating.victims(wish, lacking) is None:
            return Refused(Refusal.QUOTA, min(lacking), limits.QUOTA_RETRY_S)
        return None

    def _newcomer(self, wish: Wish, now_us: int) -> Held | Waiting | Refused:
        seating, others = self._seating, len(self._seating.waiting)
        victims = seating.victims(wish, seating.lacks(wish)) if seating.open_to(wish, now_us) else None
        if victims is not None and not others:
            held = seating.seat(wish, victims, now_us)
            seating.freed = False  # nobody waits
            return held
        is_full = others >= wish.longest_queue
        gives_way = seating.waiting.gives_way(wish) if is_full and wish.longest_queue else None
        may_enter = wish.may_wait and (not is_full or gives_way is not None)
        if victims is None and not may_enter:
            return self._full(wish, now_us)
        place = seating.waiting.enter(wish, now_us)
        if victims is not None and self._turn_of(wish, now_us):
            return self._seated(wish)
        if not may_enter:
            seating.waiting.leave(place)
            return self._full(wish, now_us)
        if gives_way is not None and len(seating.waiting) > wish.longest_queue:
            seating.leave(gives_way)
            if self._turn_of(wish, now_us):
                return self._seated(wish)
        return self._told(place)

    def _wait_on(self, wish: Wish, place: Place, now_us: int) -> Held | Waiting | Refused:
        seating, before = self._seating, place.wish
        wish = replace(wish, tenant=before.tenant, kind=before.kind, priority=before.priority, size=before.size)
        seating.waiting.renew(place, wish, now_us)
        other = (before.node, before.cost, before.quota) != (wish.node, wish.cost, wish.quota)
        if other and self._turn_of(wish, now_us):
            return self._seated(wish)
        if wish.may_wait:
            return self._told(place)
        seating.leave(place)
        seating.fill(now_us)
        return self._full(wish, now_us)

    def _turn_of(self, wish: Wish, now_us: int) -> bool:
        """Those who wait are looked through; whether it was the turn of this one."""
        self._seating.freed = True
        self._seating.fill(now_us, asker=wish.session_id)
        return self._seating.waiting.get(wish.session_id) is None

    def _seated(self, wish: Wish) -> Held:
        held = self._seating.tickets.get(wish.session_id)
        assert held is not None
        return held

    # ── answers

    def _told(self, place: Place) -> Waiting:
        position = self._seating.waiting.position(place)
        place.told = position if place.told is None else min(place.told, position)
        estimate_us = self._seating.estimate_us(place.wish.kind, place.told)
        if place.estimate_us is None:
            place.estimate_us = estimate_us
        return Waiting(place.told, None if estimate_us is None else estimate_us / 1e6)

    def _full(self, wish: Wish, now_us: int) -> Refused:
        seating = self._seating
        if not seating.open_to(wish, now_us):
            settling_us = max(seating.settled_us - now_us, limits.NO_NODE_RETRY_S * 1_000_000)
            return Refused(Refusal.SETTLING, "", settling_us / 1e6)
        names = [*seating.lacks(wish), *(name for name, _ in wish.cost), ""]
        return self._not_now(Refusal.FULL, wish, names[0])

    def _not_now(self, reason: Refusal, wish: Wish, resource: str) -> Refused:
        """To be tried again when as many have left as wait."""
        estimate_us = self._seating.estimate_us(wish.kind, len(self._seating.waiting) + 1)
        if estimate_us is None:
            return Refused(reason, resource, limits.FULL_RETRY_S)
        return Refused(reason, resource, min(max(estimate_us / 1e6, 1), limits.LONGEST_RETRY_S))
