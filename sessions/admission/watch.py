"""What admission tells whoever measures it."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from sessions.store.records import Waiting


class Asking(Protocol):
    """One applicant, while it asks."""

    def told(self, place: Waiting) -> None:
        """It waits."""
        ...


class AdmissionWatch(Protocol):
    def asking(self, kind: str) -> AbstractContextManager[Asking]:
        """Around the asking: it leaves normally when a seat was given, else by what `Admission.seat` raises."""
        ...


class Unwatched:
    @contextmanager
    def asking(self, kind: str) -> Generator["Unwatched"]:
        yield self

    def told(self, place: Waiting) -> None:
        pass
