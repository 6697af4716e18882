"""Members in the order of their scores, as in a sorted set of Redis; members of one score in the order of their names."""

from bisect import bisect_left, insort


class OrderedSet:
    def __init__(self) -> None:
        self._scores: dict[str, int] = {}
        self._order: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, member: str) -> bool:
        return member in self._scores

    def put(self, member: str, score: int) -> None:
        self.discard(member)
        self._scores[member] = score
        insort(self._order, (score, member))

    def discard(self, member: str) -> bool:
        """Whether it was there."""
        score = self._scores.pop(member, None)
        if score is None:
            return False
        del self._order[bisect_left(self._order, (score, member))]
        return True

    def score(self, member: str) -> int | None:
        return self._scores.get(member)

    def rank(self, member: str) -> int:
        """From 0. Raises KeyError for one that is not there."""
        return bisect_left(self._order, (self._scores[member], member))

    def first(self, count: int) -> list[str]:
        return [member for _, member in self._order[:count]]

    def last(self) -> str | None:
        return self._order[-1][1] if self._order else None

    def up_to(self, score: int, count: int) -> list[str]:
        """The first of those whose score is at most this."""
        return [member for _, member in self._order[: min(self.count(score), count)]]

    def count(self, score: int) -> int:
        """Of those whose score is at most this."""
        return bisect_left(self._order, (score + 1, ""))

    def members(self) -> list[str]:
        return [member for _, member in self._order]
