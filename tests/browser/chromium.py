"""Headless Chromium with a file as its microphone, driven by Playwright."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import BrowserContext, ViewportSize, async_playwright

EARS = Path(__file__).parent / "ears.js"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--use-fake-device-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    "--allow-loopback-in-peer-connection",
)
ALLOWED = "--use-fake-ui-for-media-stream"
REFUSED = "--deny-permission-prompts"
DESKTOP: ViewportSize = {"width": 1280, "height": 800}


@asynccontextmanager
async def chromium(
    microphone: Path | None = None, *, allowed: bool = True, viewport: ViewportSize = DESKTOP
) -> AsyncGenerator[BrowserContext, None]:
    """A fresh profile with `ears` in every page. `microphone`: a WAV file, played once from when a page opens it; then silence.
    `allowed`: whether whoever is asked for the microphone agrees.
    """
    flags = [*FLAGS, ALLOWED if allowed else REFUSED]
    if microphone is not None:
        flags.append(f"--use-file-for-fake-audio-capture={microphone}%noloop")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=_installed(), args=flags)
        # The page forbids scripts that are not its own; the ears are such a script.
        context = await browser.new_context(bypass_csp=True, viewport=viewport)
        await context.add_init_script(path=EARS)
        try:
            yield context
            for page in context.pages:  # the server waits for a page that goes without a goodbye
                stop = page.get_by_role("button", name="Stop", exact=True)
                if await stop.is_visible():
                    await stop.click()
                await page.close()
        finally:
            await browser.close()


def _installed() -> str:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise FileNotFoundError("chromium: expected it on the PATH; install the package `chromium`")
    return path
