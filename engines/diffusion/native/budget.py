"""How much memory the states of all sessions of a model hold together, and that they hold no more than they may."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from torch import Tensor

from engines.models import NoRoom


class _Held(NamedTuple):
    nbytes: int
    holders: int


class Budget:
    """Counts the memory behind tensors, each once however many sessions share it. Nothing is let go to make room."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.nbytes = 0
        self._held: dict[tuple[str, int], _Held] = {}

    def exchange(self, released: Iterable[Tensor], taken: Iterable[Tensor]) -> None:
        """A holder has `taken` in place of `released`. Raises NoRoom, and then everything is as it was."""
        changes, sizes = Counter[tuple[str, int]](), dict[tuple[str, int], int]()
        for tensors, sign in ((released, -1), (taken, 1)):
            for tensor in tensors:
                memory = tensor.untyped_storage()
                where = str(tensor.device), memory.data_ptr()
                changes[where] += sign
                sizes[where] = memory.nbytes()
        after = {where: _Held(sizes[where], self._holders(where) + change) for where, change in changes.items()}
        grown = sum(((new.holders > 0) - (self._holders(where) > 0)) * new.nbytes for where, new in after.items())
        if grown > 0 and self.nbytes + grown > self.limit_bytes:
            raise NoRoom(
                f"state_mb: expected at most {self.limit_bytes} bytes in the states of all sessions of this model, "
                f"got {self.nbytes + grown} with the {grown} that this session needs more"
            )
        self.nbytes += grown
        self._held.update(after)
        for where in [where for where, new in after.items() if not new.holders]:
            del self._held[where]

    def _holders(self, where: tuple[str, int]) -> int:
        held = self._held.get(where)
        return 0 if held is None else held.holders
