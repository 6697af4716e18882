"""One connection to one server. What the Redis library leaves untyped is in this file."""

from collections.abc import Sequence
from typing import TypeAlias, cast

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import RedisError, ResponseError

Reply: TypeAlias = "bytes | int | list[Reply] | None"
Failure: TypeAlias = RedisError | OSError
Answer: TypeAlias = "Reply | Failure"
Command: TypeAlias = tuple[str | bytes | int, ...]


class Wire:
    """Opened when it is used; after an error that is not a reply it is closed, and opened anew by the next use."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._connection: AbstractConnection | None = None

    async def exchange(self, commands: Sequence[Command]) -> list[Answer]:
        """Sends all, then reads as many replies. When it is cancelled in the middle the library closes the connection, so that no
        reply can be taken for that of another command."""
        replies: list[Answer] = []
        try:
            connection = await self._connected()
            await connection.send_packed_command(connection.pack_commands(commands), check_health=False)  # pyright: ignore[reportUnknownMemberType]  untyped
            while len(replies) < len(commands):
                replies.append(await self._reply(connection))
        except (RedisError, OSError) as error:
            await self.close()
            return replies + [error] * (len(commands) - len(replies))
        return replies

    async def ask(self, *command: str | bytes | int) -> Reply:
        """Raises what Redis raises."""
        (reply,) = await self.exchange([command])
        if isinstance(reply, RedisError | OSError):
            raise reply
        return reply

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)
            await self._pool.release(connection)

    async def _connected(self) -> AbstractConnection:
        if self._connection is None:
            self._connection = await self._pool.get_connection()
        return self._connection

    async def _reply(self, connection: AbstractConnection) -> Answer:
        try:
            return cast(Reply, await connection.read_response())  # pyright: ignore[reportUnknownMemberType]  untyped
        except ResponseError as error:
            return error
