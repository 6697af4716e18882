"""A KeyStore that a test can look into and take away. It counts how often it is asked."""

from collections.abc import Mapping

from sessions.store.interface import StoreDown


class FakeShelves:
    def __init__(self) -> None:
        self.shelves: dict[str, dict[str, bytes]] = {}
        self.down = False
        self.looks = 0
        """At a whole shelf."""
        self.gets = 0

    async def put(self, shelf: str, name: str, value: bytes, *, only_new: bool = False) -> bytes:
        self._check()
        records = self.shelves.setdefault(shelf, {})
        if not only_new or name not in records:
            records[name] = value
        return records[name]

    async def replace(self, shelf: str, name: str, value: bytes) -> bool:
        self._check()
        records = self.shelves.get(shelf, {})
        if name not in records:
            return False
        records[name] = value
        return True

    async def get(self, shelf: str, name: str) -> bytes | None:
        self.gets += 1
        self._check()
        return self.shelves.get(shelf, {}).get(name)

    async def shelf(self, shelf: str) -> Mapping[str, bytes]:
        self.looks += 1
        self._check()
        return dict(self.shelves.get(shelf, {}))

    async def remove(self, shelf: str, name: str) -> bool:
        self._check()
        return self.shelves.get(shelf, {}).pop(name, None) is not None

    def _check(self) -> None:
        if self.down:
            raise StoreDown("the test says so", 2.0)
