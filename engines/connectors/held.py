"""What a producer has put and not forgotten, by scope and then by seq."""

from typing import Generic, TypeVar

from engines.connectors.contents import Key

T = TypeVar("T")


class Held(Generic[T]):
    """`T` is what stands for a payload. Bounded by the memory of its owner, who refuses to put more."""

    def __init__(self) -> None:
        self._scopes: dict[str, dict[int, T]] = {}

    def add(self, key: Key, value: T) -> list[T]:
        """What the key stood for before, if anything: it is held no more."""
        scope = self._scopes.setdefault(key.scope, {})
        replaced = [scope[key.seq]] if key.seq in scope else []
        scope[key.seq] = value
        return replaced

    def find(self, key: Key) -> T | None:
        return self._scopes.get(key.scope, {}).get(key.seq)

    def take(self, scope: str, before: int | None) -> list[T]:
        """Those of a scope whose seq is less than `before` (None: all): they are held no more."""
        held = self._scopes.get(scope, {})
        taken = [held.pop(seq) for seq in list(held) if before is None or seq < before]
        if not held:
            self._scopes.pop(scope, None)
        return taken

    def take_all(self) -> list[T]:
        return [value for scope in list(self._scopes) for value in self.take(scope, None)]

    def count(self, scope: str) -> int:
        return len(self._scopes.get(scope, {}))
