"""The waiting room in memory. Between tenants of one priority it is start-time fair queueing: each place has a tag in virtual
time, the end of its tenant's place before, or now for a tenant that had none; the smallest tag is served first."""

from collections.abc import Mapping
from dataclasses import dataclass

from sessions.store.amounts import Amounts
from sessions.store.ordered_set import OrderedSet
from sessions.store.records import Priority


@dataclass(frozen=True, slots=True)
class Wish:
    """An Ask, counted."""

    session_id: str
    tenant: str
    kind: str
    node: str
    cost: Amounts
    quota: Mapping[str, int]
    priority: Priority
    size: int
    """In virtual time."""
    life_us: int
    may_wait: bool
    place_us: int
    longest_queue: int
    longest_wait_us: int

    @property
    def lane(self) -> str:
        """What those have in common of whom the second finds no room when the first finds none."""
        return f"{self.tenant}\0{self.node}\0{self.kind}"


@dataclass(slots=True)
class Place:
    wish: Wish
    """As it was repeated last; tenant, priority and size are the first one's."""
    since_us: int
    number: int
    """Of arrival."""
    tag: int
    told: int | None = None
    """The position, last."""
    estimate_us: int | None = None
    """The first that was told."""

    @property
    def name(self) -> str:
        """In the order of arrival."""
        return f"{self.number:016d}:{self.wish.session_id}:{self.wish.lane}"


class _Class:
    """Those of one priority."""

    def __init__(self) -> None:
        self.places = OrderedSet()
        self.virtual = 0
        self.finish = OrderedSet()
        """By tenant: the end of its last place; not those that are past."""


class WaitingRoom:
    """A place stands in `ends` as w:<session>."""

    def __init__(self, ends: OrderedSet) -> None:
        self._ends = ends
        self._places: dict[str, Place] = {}
        self._classes = {priority: _Class() for priority in Priority}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._places)

    def get(self, session_id: str) -> Place | None:
        return self._places.get(session_id)

    def gives_way(self, wish: Wish) -> Place | None:
        """Who is to leave a room that is full: the last one of this priority, if it is served after one who comes now would be.
        Its tenant has more of the room than its share then. So no tenant keeps the others out."""
        line = self._classes[wish.priority]
        name = line.places.last()
        last = None if name is None else self._places[name.split(":")[1]]
        return last if last is not None and last.tag > self._tag(wish) else None

    def enter(self, wish: Wish, now_us: int) -> Place:
        line, tag = self._classes[wish.priority], self._tag(wish)
        line.finish.put(wish.tenant, tag + wish.size)
        self._arrivals += 1
        place = self._places[wish.session_id] = Place(wish, now_us, self._arrivals, tag)
        line.places.put(place.name, tag)
        self._ends.put(f"w:{wish.session_id}", now_us + wish.place_us)
        return place

    def renew(self, place: Place, wish: Wish, now_us: int) -> None:
        """It is asked for again, perhaps for another node: at its old place."""
        self._classes[place.wish.priority].places.discard(place.name)
        place.wish = wish
        self._classes[wish.priority].places.put(place.name, place.tag)
        self._ends.put(f"w:{wish.session_id}", now_us + wish.place_us)

    def leave(self, place: Place) -> None:
        """Without a ticket: it has cost its tenant nothing."""
        line = self._classes[place.wish.priority]
        line.finish.put(place.wish.tenant, (line.finish.score(place.wish.tenant) or 0) - place.wish.size)
        self._remove(place)

    def served(self, place: Place) -> None:
        line = self._classes[place.wish.priority]
        line.virtual = max(line.virtual, place.tag)
        self._remove(place)

    def names(self, priority: Priority, count: int) -> list[str]:
        return self._classes[priority].places.first(count)

    def position(self, place: Place) -> int:
        """From 1."""
        ahead = sum(len(self._classes[priority].places) for priority in Priority if priority < place.wish.priority)
        return ahead + self._classes[place.wish.priority].places.rank(place.name) + 1

    def _tag(self, wish: Wish) -> int:
        line = self._classes[wish.priority]
        return max(line.virtual, line.finish.score(wish.tenant) or 0)

    def _remove(self, place: Place) -> None:
        line = self._classes[place.wish.priority]
        line.places.discard(place.name)
        del self._places[place.wish.session_id]
        self._ends.discard(f"w:{place.wish.session_id}")
        if not line.places:
            self._classes[place.wish.priority] = _Class()
            return
        for tenant in line.finish.up_to(line.virtual, len(line.finish)):
            line.finish.discard(tenant)
