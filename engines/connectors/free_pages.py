"""Which pages of an arena are free."""


class FreePages:
    """The next free run is searched from where the last one ended, and steps over what is in use: who holds on to a page takes
    that page and stops nobody."""

    def __init__(self, count: int) -> None:
        self._used = bytearray(count)
        self._next = 0

    def take(self, count: int) -> int | None:
        """The first of `count` pages in a row; None when there is no such run."""
        run = bytes(count)
        first = self._used.find(run, self._next)
        if first < 0:
            first = self._used.find(run)
        if first < 0:
            return None
        self._next = first + count
        self._used[first : self._next] = b"\1" * count
        return first

    def give(self, first: int, count: int) -> None:
        self._used[first : first + count] = bytes(count)
