"""The network between the pages of a browser and the server: requests and UDP, which can be cut and mended together."""

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, Route
from playwright.async_api import Error as GivenUp

from fakes.udp_relay import UdpRelay

CALLS = "/v1/realtime/calls"


class Network:
    """`async with Network(context)`, before its pages are opened. Each call gets a relay of its own. While it is cut,
    requests wait as if they were sent again and again. `offers` are the addresses that calls were asked at."""

    def __init__(self, context: BrowserContext) -> None:
        self.offers: list[str] = []
        self._context = context
        self._relays: list[UdpRelay] = []
        self._stack = AsyncExitStack()
        self._whole = asyncio.Event()
        self._whole.set()

    async def __aenter__(self) -> "Network":
        await self._context.route("**/*", self._pass)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.mend()
        await self._context.unroute_all(behavior="ignoreErrors")
        await self._stack.aclose()

    def cut(self) -> None:
        self._whole.clear()
        for relay in self._relays:
            relay.cut()

    def cut_sound(self) -> None:
        """UDP alone: requests still get through."""
        for relay in self._relays:
            relay.cut()

    def lose(self, share: float) -> None:
        """Of the datagrams of the calls that there are, each way."""
        for relay in self._relays:
            relay.loss = share

    def mend(self) -> None:
        self._whole.set()
        for relay in self._relays:
            relay.mend()

    async def _pass(self, route: Route) -> None:
        await self._whole.wait()
        try:
            if urlsplit(route.request.url).path == CALLS:
                await self._offer(route)
            else:
                await route.continue_()
        except GivenUp:
            pass  # the page does not wait for it any more

    async def _offer(self, route: Route) -> None:
        self.offers.append(route.request.url)
        answer = await route.fetch()
        if answer.status != 201:
            await route.fulfill(response=answer)
            return
        relay = await self._stack.enter_async_context(UdpRelay())
        self._relays.append(relay)
        if not self._whole.is_set():
            relay.cut()
        await route.fulfill(response=answer, body=relay.instead_of_server(await answer.text()))
