"""Speech as a microphone's file, and browsers that hold it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext

import recordings
from browser import microphone
from browser.chromium import chromium
from recordings import Utterance

Browse: TypeAlias = Callable[..., Awaitable[BrowserContext]]


@pytest_asyncio.fixture
async def browse(tmp_path: Path) -> AsyncIterator[Browse]:
    """`await browse((utterance, pause_s), …)`: a browser whose microphone says that, and then nothing."""
    async with AsyncExitStack() as stack:

        async def launch(*turns: tuple[Utterance, float], **options: Any) -> BrowserContext:
            wav = microphone.write(tmp_path / "microphone.wav", microphone.script(turns, lead_in_s=2.0))
            return await stack.enter_async_context(chromium(wav, **options))

        yield launch


@pytest.fixture(scope="session")
def question() -> Utterance:
    return recordings.read_by_espeak("What is the capital of France?")
