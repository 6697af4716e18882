"""Of all who come back to one session at the same time the newest gets it; those before are let go, wherever they have got to."""

import asyncio
from collections.abc import AsyncGenerator, Container
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from sessions.retention.resume_tokens import Stopped, Superseded


class _Rivals:
    """In the order of their arrival."""

    def __init__(self) -> None:
        self.coming: list[Return] = []
        self.claiming = asyncio.Lock()


class Return:
    """One who comes back with `token`, a hash, until it has its session."""

    def __init__(self, rivals: _Rivals, token: bytes) -> None:
        self.token = token
        self.claiming = rivals.claiming
        """To be held around each claim: one after the other, and none is broken off for a newer one."""
        self.has_claimed = False
        self.let_go: Superseded | Stopped | None = None
        """Why it gets no further."""
        self.until_let_go = asyncio.timeout(None)
        self.over = asyncio.Event()
        self._rivals = rivals

    def claimed(self, tokens: Container[bytes]) -> None:
        """Its token was the right one: the session is its own, and those who came before it have to go. Those without a right to
        it do not learn from that whether there is such a session: `tokens` are good."""
        self.has_claimed = True
        for each in self._before():
            if each.has_claimed or each.token in tokens:
                each.stop(Superseded())

    async def is_alone(self) -> bool:
        """False: others had to go first, and have let go of the session. It is to be claimed again."""
        let_go = [each for each in self._before() if each.let_go is not None]
        for each in let_go:
            await each.over.wait()
        return not let_go

    def stop(self, why: Superseded | Stopped) -> None:
        if self.let_go is None:
            self.let_go = why
            self.until_let_go.reschedule(0)

    def _before(self) -> list["Return"]:
        coming = self._rivals.coming
        return coming[: coming.index(self)]


class Returns:
    """All that are under way at this node."""

    def __init__(self) -> None:
        self._rivals: WeakValueDictionary[str, _Rivals] = WeakValueDictionary()

    @asynccontextmanager
    async def under_way(self, session_id: str, token: bytes) -> AsyncGenerator[Return]:
        """Around all from its arrival until the session is its own. Raises Superseded, as a newer one was let in, and Stopped."""
        rivals = self._rivals.setdefault(session_id, _Rivals())
        one = Return(rivals, token)
        rivals.coming.append(one)
        try:
            async with one.until_let_go:
                yield one
        except TimeoutError:
            if one.let_go is None:
                raise
            raise one.let_go from None
        finally:
            rivals.coming.remove(one)
            one.over.set()

    async def give_way(self, session_id: str, why: Superseded | Stopped) -> None:
        """To another node, or to an operator. Returns when whoever had claimed the session here has let go of it."""
        rivals = self._rivals.get(session_id)
        if rivals is None:
            return
        async with rivals.claiming:
            claimed = [each for each in rivals.coming if each.has_claimed]
            for each in claimed:
                each.stop(why)
        for each in claimed:
            await each.over.wait()
