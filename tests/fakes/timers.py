"""A loop's call_later under the test's control."""

from collections.abc import Callable


class Handle:
    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Timers:
    """`waiting` holds what was asked for: after how many seconds, what, and whether it still holds."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None], Handle]] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Handle:
        handle = Handle()
        self.waiting.append((delay_s, callback, handle))
        return handle

    def fire(self, up_to_s: float = float("inf")) -> None:
        """So much time has passed at once."""
        due = [timer for timer in self.waiting if timer[0] <= up_to_s]
        self.waiting = [timer for timer in self.waiting if timer[0] > up_to_s]
        for _, callback, handle in due:
            if not handle.cancelled:
                callback()
