"""Which pages of an arena are free."""


class FreePages:
    """The lowest run that is long enough, stepping over what is in use: who holds on to a page takes that page and stops nobody.
    The lowest, because what was free a moment ago is still in the caches: a ring would walk through all of the memory."""

    def __init__(self, count: int) -> None:
        self._used = bytearray(count)

    def take(self, count: int) -> int | None:
        """The first of `count` pages in a row; None when there is no such run."""
        first = self._used.find(bytes(count))
        if first < 0:
            return None
        self._used[first : first + count] = b"\1" * count
        return first

    def give(self, first: int, count: int) -> None:
        self._used[first : first + count] = bytes(count)
