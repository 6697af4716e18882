"""Who gets what is free, in memory: what is lacking, what may be taken from those who are away, whose turn it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from sessions.store import admission_limits as limits
from sessions.store.memory_nodes import Nodes
from sessions.store.memory_pool import Pool
from sessions.store.memory_tickets import Held, Standing, Tickets
from sessions.store.memory_waiting import Place, WaitingRoom, Wish
from sessions.store.ordered_set import OrderedSet
from sessions.store.records import Evicted, News, Offered, Priority


class Turn(Enum):
    """What comes of a place that is looked at."""

    SEATED = auto()
    NO_ROOM = auto()
    """Nor is there any for another of the same kind at this node."""
    NO_ROOM_FOR_TENANT = auto()


@dataclass(slots=True)
class Blocked:
    """What those have first call on who found no room in this round: whoever stands behind them does not take it from them."""

    resources: set[str] = field(default_factory=set[str])
    lanes: set[str] = field(default_factory=set[str])

    def block(self, wish: Wish, lacking: dict[str, int]) -> None:
        """Who lacks something of its host waits for all of host and node; who lacks something of its node or tenant, for that."""
        scopes = {_scope(name) for name in lacking}
        if "host" in scopes:
            scopes.add("node")
        self.resources.update(name for name, _ in wish.cost if _scope(name) in scopes)


class Seating:
    """`tell` gets the news for a node. Times in µs; `settled_us`: until then only RESUME is seated."""

    def __init__(self, settled_us: int, tell: Callable[[str, News], None]) -> None:
        self.ends = OrderedSet()
        """Everything that happens by itself, by its time."""
        self.pool = Pool()
        self.tickets = Tickets(self.pool, self.ends)
        self.waiting = WaitingRoom(self.ends)
        self.nodes = Nodes(self.pool, self.ends)
        self.given = OrderedSet()
        """Tickets that their nodes cannot have back, by when they ended."""
        self.orphans = OrderedSet()
        """By when they may be taken."""
        self.departed_us: dict[str, int] = {}
        self.interval_us: dict[str, int] = {}
        """Between two departures, by kind."""
        self.wait_error_us: int | None = None
        self.freed = False
        """Something became free since the places were last looked through."""
        self.settled_us = settled_us
        self._tell = tell
        self._last_number = 0
        self.ends.put("settled", settled_us)

    # ── what is lacking

    def lacks(self, wish: Wish, blocked: Blocked | None = None) -> dict[str, int]:
        """How much of what, sorted by name. What the session's own ticket gives back is no lack."""
        held = self.tickets.get(wish.session_id)
        own = {} if held is None else dict(held.cost)
        lacking: dict[str, int] = {}
        for name, parts in wish.cost:
            need = parts - own.get(name, 0)
            short = need - self.pool.free(name, wish.quota, wish.priority)
            if need > 0 and (short > 0 or (blocked is not None and name in blocked.resources)):
                lacking[name] = short
        return lacking

    def victims(self, wish: Wish, lacking: dict[str, int]) -> list[Held] | None:
        """Lent tickets that make room for it, those lent longest first; None: they do not make enough."""
        taken: dict[str, Held] = {}
        for name, short in lacking.items():
            left = short - sum(dict(held.cost).get(name, 0) for held in taken.values())
            for held in self.tickets.longest_lent(name, limits.LENT_READ):
                if left > 0 and held.session_id != wish.session_id and held.session_id not in taken:
                    taken[held.session_id] = held
                    left -= dict(held.cost)[name]
            if left > 0:
                return None
        return list(taken.values())

    def open_to(self, wish: Wish, now_us: int) -> bool:
        """Whether its node takes anybody, and the store lets anybody in."""
        kept = self.nodes.living(wish.node)
        settled = wish.priority is Priority.RESUME or now_us >= self.settled_us
        return settled and kept is not None and kept.told.ready and not kept.told.draining

    # ── whose turn it is

    def fill(self, now_us: int, asker: str | None = None) -> None:
        """Those who wait get what is free. The one who asks just now has its ticket at once; the others are offered theirs."""
        granted = 0
        while self.freed and len(self.waiting):
            self.freed = False
            granted = self._look_through(granted, now_us, asker)
        self.freed = False

    def _look_through(self, granted: int, now_us: int, asker: str | None) -> int:
        """Returns how many have been granted in all."""
        blocked = Blocked()
        for priority in Priority:
            for name in self.waiting.names(priority, limits.PLACES_READ):
                _, session_id, of_tenant = name.split(":", 2)
                lane = of_tenant.partition("\0")[2]
                if lane in blocked.lanes or of_tenant in blocked.lanes:
                    continue
                place = self.waiting.get(session_id)
                assert place is not None
                if granted == limits.GRANTS_AT_ONCE:
                    self.ends.put("more", now_us)
                    return granted
                match self._grant(place, blocked, now_us, session_id == asker):
                    case Turn.SEATED:
                        granted += 1
                    case Turn.NO_ROOM:
                        blocked.lanes.add(lane)
                    case Turn.NO_ROOM_FOR_TENANT:
                        blocked.lanes.add(of_tenant)
                if len(blocked.lanes) == limits.LANES_READ:
                    return granted
        return granted

    def _grant(self, place: Place, blocked: Blocked, now_us: int, at_once: bool) -> "Turn":
        wish = place.wish
        if not self.open_to(wish, now_us):
            return Turn.NO_ROOM
        lacking = self.lacks(wish, blocked)
        own = {name: short for name, short in lacking.items() if _scope(name) == "tenant"}
        shared = {name: short for name, short in lacking.items() if name not in own}
        has_room = self._victims_for_its_turn(wish, shared, blocked) is not None
        victims = self._victims_for_its_turn(wish, lacking, blocked) if has_room else None
        if victims is None:
            blocked.block(wish, own if has_room else lacking)
            return Turn.NO_ROOM_FOR_TENANT if has_room else Turn.NO_ROOM
        self._note_wait(place, now_us)
        self.waiting.served(place)
        self.seat(wish, victims, now_us, None if at_once else now_us + wish.place_us)
        if not at_once:
            self._tell(wish.node, Offered(wish.session_id))
        return Turn.SEATED

    def _victims_for_its_turn(self, wish: Wish, lacking: dict[str, int], blocked: Blocked) -> list[Held] | None:
        """None also if somebody else has first call on what it lacks."""
        return None if blocked.resources.intersection(lacking) else self.victims(wish, lacking)

    def seat(self, wish: Wish, victims: list[Held], now_us: int, offered_us: int | None = None) -> Held:
        """A ticket, in place of one that it had; offered until then, or a full one."""
        for victim in victims:
            self.end(victim, now_us)
        before, ends_us = self.tickets.get(wish.session_id), now_us + wish.life_us
        if before is not None:
            self.tickets.remove(before)
            self._give_away(before, now_us)
            self.freed = True
            ends_us = min(ends_us, before.ends_us) if before.ran else ends_us
        self._last_number = max(self._last_number + 1, now_us)
        held = Held(
            session_id=wish.session_id,
            tenant=wish.tenant,
            kind=wish.kind,
            node=wish.node,
            cost=wish.cost,
            number=self._last_number,
            ends_us=ends_us,
            ran=offered_us is None or (before is not None and before.ran),
            offered_us=offered_us,
        )
        self._add(held)
        return held

    def claim(self, claimed: Held, now_us: int) -> bool:
        """One that its node says to have, and the store has not: it is there again, unless it was given away, or may have been: a
        node that was away until the store had settled was mute, and others may have its seats."""
        has_room = all(self.pool.free(name, {}, Priority.RESUME) >= parts for name, parts in claimed.cost)
        if claimed.owner in self.given or (now_us >= self.settled_us and not has_room):
            return False
        self._last_number = max(self._last_number, claimed.number)
        self._add(claimed)
        return True

    def _add(self, held: Held) -> None:
        self.tickets.add(held)
        self.given.discard(held.owner)
        self.orphans.discard(held.session_id)

    # ── what ends by itself

    def end_due(self, now_us: int) -> None:
        for item in self.ends.up_to(now_us, limits.DUE_AT_ONCE):
            due_us = self.ends.score(item)
            if due_us is None:
                continue  # one before it has changed that
            what, _, name = item.partition(":")
            match what:
                case "t":
                    self._ticket_due(name, now_us)
                case "w":
                    self.leave(self.waiting.get(name))
                case "n":
                    self.node_dies(name, due_us)
                case "l":
                    self._lend_those_of(name, now_us)
                case "g":
                    self._end_those_of(name, now_us)
                case _:
                    self.ends.discard(item)
                    self.freed = True

    def node_dies(self, node: str, died_us: int) -> None:
        kept = self.nodes.living(node)
        if kept is not None:
            self.nodes.die(kept, died_us)

    def end(self, held: Held, now_us: int, *, tell: bool = True) -> None:
        """Not because its node has given it back."""
        self.give_back(held, now_us)
        if held.ran:
            self._give_away(held, now_us)
            _put_bounded(self.orphans, held.session_id, now_us, limits.ORPHANS_KEPT)
        if held.ran and tell:
            self._tell(held.node, Evicted(held.session_id, held.number))

    def _give_away(self, held: Held, now_us: int) -> None:
        """Its node cannot have it back."""
        _put_bounded(self.given, held.owner, now_us, limits.GIVEN_KEPT)
        for old in self.given.up_to(now_us - limits.GIVEN_KEPT_S * 1_000_000, limits.GIVEN_KEPT):
            self.given.discard(old)

    def give_back(self, held: Held, now_us: int) -> None:
        self.tickets.remove(held)
        self.freed = True
        self._note_departure(held.kind, now_us)

    def leave(self, place: Place | None) -> None:
        """Without a ticket."""
        if place is not None:
            self.waiting.leave(place)
            self.freed = True  # for those who were not to overtake it

    def lend(self, held: Held, now_us: int) -> None:
        if not held.lent:
            self.tickets.lend(held, now_us)
            self.freed = True

    def _ticket_due(self, session_id: str, now_us: int) -> None:
        held = self.tickets.get(session_id)
        assert held is not None
        if held.over_us <= now_us:
            self.end(held, now_us)
        else:
            self.lend(held, now_us)

    def _lend_those_of(self, node: str, now_us: int) -> None:
        batch = self.tickets.of_node(node, Standing.FULL, limits.DUE_AT_ONCE)
        for held in batch:
            self.lend(held, now_us)
        if len(batch) < limits.DUE_AT_ONCE:
            self.ends.discard(f"l:{node}")

    def _end_those_of(self, node: str, now_us: int) -> None:
        batch = self.tickets.of_node(node, Standing.LEFT, limits.DUE_AT_ONCE)
        for held in batch:
            self.end(held, now_us)
        if len(batch) < limits.DUE_AT_ONCE:
            self.ends.discard(f"g:{node}")
            self.nodes.remove(node)

    # ── averages

    def estimate_us(self, kind: str, position: int) -> int | None:
        interval = self.interval_us.get(kind)
        return None if interval is None else position * interval

    def _note_departure(self, kind: str, now_us: int) -> None:
        """A long pause says little: it counts as eight intervals at most. Who leave in one step count as one."""
        last, interval = self.departed_us.get(kind, now_us), self.interval_us.get(kind)
        self.departed_us[kind] = now_us
        if last < now_us:
            passed = now_us - last
            self.interval_us[kind] = passed if interval is None else _moved(interval, min(passed, limits.SMOOTHING * interval))

    def _note_wait(self, place: Place, now_us: int) -> None:
        if place.estimate_us is not None:
            error = abs(place.estimate_us - (now_us - place.since_us))
            self.wait_error_us = error if self.wait_error_us is None else _moved(self.wait_error_us, error)


def _scope(name: str) -> str:
    return name.partition(":")[0]


def _moved(average: int, to: int) -> int:
    return average + (to - average) // limits.SMOOTHING


def _put_bounded(ordered: OrderedSet, member: str, score: int, most: int) -> None:
    ordered.put(member, score)
    for oldest in ordered.first(max(len(ordered) - most, 0)):
        ordered.discard(oldest)
