"""Named records of an installation in Redis."""

from collections.abc import Mapping

from sessions.store.connection import StoreConnection
from sessions.store.keys import shelf_key
from sessions.store.replies import understood


class RedisShelves:
    """A KeyStore."""

    def __init__(self, connection: StoreConnection) -> None:
        self._connection = connection

    async def put(self, shelf: str, name: str, value: bytes, *, only_new: bool = False) -> bytes:
        reply = await self._connection.call("shelf_put", (shelf_key(shelf),), (name, value, int(only_new)))
        return understood(reply, bytes)

    async def replace(self, shelf: str, name: str, value: bytes) -> bool:
        return await self._connection.call("shelf_replace", (shelf_key(shelf),), (name, value)) == 1

    async def get(self, shelf: str, name: str) -> bytes | None:
        return understood(await self._connection.call("shelf_get", (shelf_key(shelf),), (name,)), bytes | None)

    async def shelf(self, shelf: str) -> Mapping[str, bytes]:
        flat = understood(await self._connection.call("shelf_list", (shelf_key(shelf),)), list[bytes])
        return {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}

    async def remove(self, shelf: str, name: str) -> bool:
        return await self._connection.call("shelf_remove", (shelf_key(shelf),), (name,)) == 1
