"""What the way through Antiphon costs a language model: HTTP streaming beside vLLM's AsyncLLM called bare.

    tests/run bench text_route [--short]

Two processes with the same weights, slots and settings answer the same questions in turns, so that the machine's noise hits both.
Ours is measured at an HTTP client and the bare one inside its process (bench/bare_llm.py): what gateway, worker, sockets and the
client cost is all on our side. Both tokenise and detokenise. Nothing is pinned to a core.

Prints one JSON object as its last line. `added_ttft_ms`: median of the differences, one question at a time. `ttft_ratio_70`,
`ttft_p95_ratio_70`: first text when questions come by chance, at 70 % of what the bare one can do. `tok_s_ratio`,
`tok_s_ratio_32`: tokens per second with 16 and 32 at once. `cpu_us_per_token`: CPU time of gateway and worker beyond that of the
bare process, with 16 at once. `chunk_off_ratio`: first text of 8 spoken answers at once when their sound is made as a whole,
against that in chunks; null in the short form, which starts no second server.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from bench.bare_llm import BareLlm, Settings
from bench.chat_client import ChatClient
from bench.command import note
from bench.cpu_time import child
from bench.load import closed_loop, open_loop, questions
from bench.server import Server, running_server
from bench.sides import Blocks, Side, in_turns
from engines.models.options import VllmOptions
from engines.weights import directory
from realtime.deployment import DEFAULT_FILE

SLOTS = 32
"""Twice those of the deployment, so that 32 at once do not wait for each other."""
SHARE_OF_CAPACITY = 0.7
SPEAKERS = 8
NO_CHUNKS = {"talker->code2wav": "full"}
FIRST_WORDS = (4, 4)
SPOKEN_TOKENS = (12, 20)
T = TypeVar("T")
U = TypeVar("U")


class Plan(msgspec.Struct, frozen=True):
    """How much of each measurement. `closed`: blocks a side by how many ask at once, and each of them asks `rounds` times."""

    alone: int
    closed: dict[int, int]
    rounds: int
    max_tokens: tuple[int, int]
    open_blocks: int
    open_s: float
    spoken_blocks: int


FULL = Plan(alone=24, closed={16: 3, 32: 2}, rounds=2, max_tokens=(24, 72), open_blocks=3, open_s=12.0, spoken_blocks=3)
SHORT = Plan(alone=4, closed={16: 1, 32: 1}, rounds=1, max_tokens=(4, 8), open_blocks=1, open_s=1.0, spoken_blocks=0)


def deployment(folder: Path, name: str, **changed: object) -> Path:
    """The default deployment's language model and voice, with more slots."""
    sections = yaml.safe_load(DEFAULT_FILE.read_text())
    wanted = ("thinker", "talker", "code2wav")
    sections["workers"] = {"mind": {"stages": ["thinker"]}, "mouth": {"stages": ["talker", "code2wav"]}}
    sections["stages"] = {stage: sections["stages"][stage] for stage in wanted}
    sections["stages"]["thinker"]["slots"] = SLOTS
    sections["voices"] = {"joe": sections["voices"]["joe"]}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(sections | changed))
    return file


def bare_settings(file: Path) -> Settings:
    thinker = yaml.safe_load(file.read_text())["stages"]["thinker"]
    return Settings(str(directory(thinker["weights"])), msgspec.convert(thinker["options"], VllmOptions), thinker["slots"])


def serving(file: Path):
    return running_server("--log-level", "warning", "--deployment", str(file))


def model_of(file: Path) -> str:
    return yaml.safe_load(file.read_text())["stages"]["thinker"]["weights"]


async def started(
    stack: AsyncExitStack, one: AbstractAsyncContextManager[T], other: AbstractAsyncContextManager[U]
) -> tuple[T, U]:
    """Both, side by side: each takes a quarter of a minute."""
    async with asyncio.TaskGroup() as group:
        first = group.create_task(stack.enter_async_context(one))
        second = group.create_task(stack.enter_async_context(other))
    return first.result(), second.result()


@asynccontextmanager
async def ours_and_bare(file: Path) -> AsyncGenerator[tuple[Side, Side]]:
    async with AsyncExitStack() as stack:
        server, bare = await started(stack, serving(file), BareLlm.running(bare_settings(file)))
        client = ChatClient(server.url, model_of(file))
        stack.callback(client.close)
        yield Side(client, (server.pid, child(server.pid, "antiphon mind"))), Side(bare, (bare.pid,))


async def alone(sides: tuple[Side, Side], plan: Plan) -> tuple[Blocks, Blocks]:
    """A pair of answers of a few words for each question."""
    asked = questions(plan.alone, FIRST_WORDS, seed=1)
    return await in_turns(*sides, len(asked), lambda side, turn: closed_loop(side, [asked[turn]], 1))


async def crowded(sides: tuple[Side, Side], plan: Plan, people: int) -> tuple[Blocks, Blocks]:
    asked = [questions(people * plan.rounds, plan.max_tokens, seed=people + block) for block in range(plan.closed[people])]
    return await in_turns(*sides, len(asked), lambda side, block: closed_loop(side, asked[block], people))


async def by_chance(sides: tuple[Side, Side], plan: Plan, per_second: float) -> tuple[Blocks, Blocks]:
    count = max(4, round(per_second * plan.open_s))
    asked = [questions(count, plan.max_tokens, seed=100 + block) for block in range(plan.open_blocks)]
    return await in_turns(*sides, len(asked), lambda side, block: open_loop(side, asked[block], per_second, seed=block))


async def warm(sides: tuple[Side, ...]) -> None:
    """A first crowd costs extra: connections, pages, caches."""
    await asyncio.gather(*(closed_loop(side.answerer, questions(SLOTS, FIRST_WORDS, seed=0), SLOTS) for side in sides))


async def measure(sides: tuple[Side, Side], plan: Plan) -> dict[str, Any]:
    await warm(sides)
    single = _noted("one at a time", await alone(sides, plan))
    crowds = {people: _noted(f"{people} at once", await crowded(sides, plan, people)) for people in plan.closed}
    per_second = SHARE_OF_CAPACITY * max(bare.questions_per_s for _, bare in crowds.values())
    chance = _noted(f"{per_second:.1f} a second", await by_chance(sides, plan, per_second))
    ours, bare = crowds[16]
    return {
        "added_ttft_ms": round(statistics.median(map(float.__sub__, single[0].first_ms, single[1].first_ms)), 2),
        "ttft_ratio_70": _ratio(chance, lambda side: side.first_quantile_ms(0.5)),
        "ttft_p95_ratio_70": _ratio(chance, lambda side: side.first_quantile_ms(0.95)),
        "tok_s_ratio": _ratio(crowds[16], lambda side: side.tokens_per_s),
        "tok_s_ratio_32": _ratio(crowds[32], lambda side: side.tokens_per_s),
        "cpu_us_per_token": round(ours.cpu_us_per_token - bare.cpu_us_per_token, 1),
        "bare": {
            "ttft_ms": round(single[1].first_quantile_ms(0.5), 1),
            "tok_s": round(bare.tokens_per_s, 1),
            "tok_s_32": round(crowds[32][1].tokens_per_s, 1),
            "cpu_us_per_token": round(bare.cpu_us_per_token, 1),
        },
    }


async def chunk_off_ratio(folder: Path, plan: Plan) -> float:
    """Two servers: speech in chunks, and speech decoded as a whole."""
    chunked, whole = deployment(folder, "chunked"), deployment(folder, "whole", edges=NO_CHUNKS)
    async with AsyncExitStack() as stack:
        on, off = await started(stack, serving(chunked), serving(whole))
        sides = Side(_spoken(off, whole), (off.pid,)), Side(_spoken(on, chunked), (on.pid,))
        await warm(sides)
        asked = [questions(SPEAKERS * plan.rounds, SPOKEN_TOKENS, seed=200 + block) for block in range(plan.spoken_blocks)]
        spoken = await in_turns(*sides, len(asked), lambda side, block: closed_loop(side, asked[block], SPEAKERS))
    return _ratio(_noted(f"{SPEAKERS} spoken at once, whole and in chunks", spoken), lambda side: side.first_quantile_ms(0.5))


def _spoken(server: Server, file: Path) -> ChatClient:
    return ChatClient(server.url, model_of(file), modalities=["text", "audio"], audio={"voice": "joe", "format": "pcm16"})


def _ratio(blocks: tuple[Blocks, Blocks], figure: Callable[[Blocks], float]) -> float:
    one, other = map(figure, blocks)
    return round(one / other, 3)


def _noted(what: str, blocks: tuple[Blocks, Blocks]) -> tuple[Blocks, Blocks]:
    shown = (
        f"first text {b.first_quantile_ms(0.5):.1f} ms (p95 {b.first_quantile_ms(0.95):.1f}), {b.tokens_per_s:.0f} tokens/s, "
        f"{b.cpu_us_per_token:.0f} µs of CPU a token"
        for b in blocks
    )
    note(f"{what}: " + " | ".join(shown))
    return blocks


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--short", action="store_true")
    plan = SHORT if options.parse_args().short else FULL
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        async with ours_and_bare(deployment(folder, "text")) as sides:
            note(f"both ready after {time.monotonic() - started:.0f} s")
            result = await measure(sides, plan)
        result["chunk_off_ratio"] = await chunk_off_ratio(folder, plan) if plan.spoken_blocks else None
    note(f"measured in {time.monotonic() - started:.0f} s")
    print(msgspec.json.encode(result).decode())


if __name__ == "__main__":
    asyncio.run(main())
