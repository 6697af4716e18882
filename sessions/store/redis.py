"""The store that several processes share, on Redis 7 or later."""

from sessions.store.connection import StoreConnection
from sessions.store.interface import CallWatch
from sessions.store.redis_admission import RedisAdmission
from sessions.store.redis_jobs import RedisJobs
from sessions.store.redis_sessions import RedisSessions
from sessions.store.redis_shelves import RedisShelves


class RedisStore(RedisAdmission, RedisSessions, RedisShelves, RedisJobs):
    """A Store. See RedisAdmission for `settle_s`."""

    def __init__(self, connection: StoreConnection, settle_s: float) -> None:
        RedisAdmission.__init__(self, connection, settle_s)
        RedisSessions.__init__(self, connection, self.incarnation)
        RedisShelves.__init__(self, connection)
        RedisJobs.__init__(self, connection)

    def measured_by(self, watch: CallWatch) -> None:
        self._connection.watch = watch

    async def close(self) -> None:
        await self._connection.close()
