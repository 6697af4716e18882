"""The voice page, as someone who uses it finds things on it."""

from collections.abc import Mapping

from playwright.async_api import BrowserContext, Locator, Page, expect

from browser.ears import heard

CONNECTED_MS = 10_000
ANSWERED_MS = 30_000


class VoicePage:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.main = page.locator("main#conversation")
        self.start = page.get_by_role("button", name="Start", exact=True)
        self.stop = page.get_by_role("button", name="Stop", exact=True)
        self.interrupt = page.get_by_role("button", name="Interrupt", exact=True)
        self.push_to_talk = page.get_by_role("button", name="Push to talk", exact=True)
        self.hold = page.get_by_role("button", name="Hold to talk", exact=True)
        self.send = page.get_by_role("button", name="Send", exact=True)
        self.message = page.get_by_role("textbox", name="Message", exact=True)
        self.notice = page.locator("#notice[role=alert]")
        self.log = page.get_by_role("log", name="Conversation")

    @classmethod
    async def open(cls, context: BrowserContext, url: str) -> "VoicePage":
        """With a server that is ready to be talked to."""
        page = cls(await context.new_page())
        await page.page.goto(url)
        await expect(page.start).to_be_enabled()
        return page

    async def call(self) -> None:
        """Start, and wait until the page says that it listens."""
        await self.start.click()
        await self.shows("listening", "voice", CONNECTED_MS)

    async def hang_up(self) -> None:
        await self.stop.click()
        await expect(self.start).to_be_enabled()

    async def write(self, text: str) -> None:
        await self.message.fill(text)
        await self.message.press("Enter")

    async def shows(self, state: str, transport: str | None = None, timeout_ms: float = ANSWERED_MS) -> None:
        """Wait until the page is in this state."""
        await expect(self.main).to_have_attribute("data-state", state, timeout=timeout_ms)
        if transport is not None:
            await expect(self.main).to_have_attribute("data-transport", transport)

    def turns(self, role: str, status: str | None = None) -> Locator:
        """What `user` or `assistant` said, as the transcript shows it."""
        which = f'[data-role="{role}"]' + (f'[data-status="{status}"]' if status else "")
        return self.log.locator(f"article.turn{which}")

    async def told(self, kind: str, count: int = 1, timeout_ms: float = ANSWERED_MS) -> None:
        """Wait until the data channel has brought this many events of that type."""
        await self.page.wait_for_function(
            "([kind, count]) => ears.said(kind) >= count", arg=[kind, count], polling=50, timeout=timeout_ms
        )

    async def order(self, session: Mapping[str, object]) -> None:
        """Change the session beside the page's back, over its own data channel; returns when the server has."""
        before = sum(told.kind == "session.updated" for told in (await heard(self.page)).events)
        await self.page.evaluate(
            "event => ears.send(event)", {"type": "session.update", "session": {"type": "realtime", **session}}
        )
        await self.told("session.updated", before + 1)
