"""The voice page in Chromium against the default deployment: connecting, gaps in answers, what its jitter buffer does.

    tests/run bench browser [--short] [--url http://127.0.0.1:8080 --pid N]

Prints one JSON object as its last line. Times in milliseconds; shares are fractions of 1.

How it is measured: a file speaks into Chromium's microphone, so that it is known to the sample when each utterance begins and
ends; one AudioWorklet in the page sees microphone and remote audio on one clock (browser/ears.js). `gaps` compares what was heard
with the answer's own audio. Latencies and interruptions: `bench bargein`.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from bench import page_talk
from bench.command import measured_at_a_server, note
from bench.loop_lag import loop_lags, quantile_ms
from bench.server import Server
from bench.voice import all_questions, percentile, spread
from recordings import Utterance


class Plan(msgspec.Struct, frozen=True):
    """How much of each measurement; the short form only shows that everything still works. `room_s` for an answer: its
    16 tokens are some 5 s of speech, and the first sound comes after up to 1.5 s."""

    turns: int
    room_s: float
    connects: int
    long_answer: bool


FULL = Plan(turns=8, room_s=6.0, connects=22, long_answer=True)
SHORT = Plan(turns=1, room_s=2.0, connects=0, long_answer=False)


async def measure(server: Server, plan: Plan) -> dict[str, Any]:
    note(f"ready after {server.ready_s:.1f} s")
    result = await turns(server, spread(await all_questions(server, synthetic=0), plan.turns), plan)
    result["ready_s"] = round(server.ready_s, 1)
    return result


async def turns(server: Server, asked: Sequence[Utterance], plan: Plan) -> dict[str, Any]:
    """Everything about answers that are not interrupted, and about connecting."""
    before = await loop_lags(server)
    talk = await page_talk.short_turns(server, asked, plan.room_s)
    after = await loop_lags(server)
    for turn in talk.turns:
        note(str(turn))
    answers = [*talk.answers, *([await page_talk.long_answer(server)] if plan.long_answer else [])]
    gaps = [await page_talk.gaps_in(server, answer) for answer in answers]
    note(f"gaps {gaps}, made up {[round(answer.concealed_ms) for answer in answers]} ms")
    connects = [*talk.connects_ms, *(await page_talk.connects_ms(server, plan.connects) if plan.connects else [])]
    return {
        "connect_p50_ms": percentile(connects, 0.5),
        "connect_p95_ms": percentile(connects, 0.95),
        "connects": len(connects),
        "gaps": sum(gaps),
        "answers_compared": len(answers),
        "longest_answer_s": round(max((answer.seconds for answer in answers), default=0.0), 1),
        "concealed_ms": round(sum(answer.concealed_ms for answer in answers), 1),
        "jitter_buffer_ms": talk.waited_ms,
        "loop_lag_p99_ms": quantile_ms(before, after, 0.99),
    }


if __name__ == "__main__":
    asyncio.run(measured_at_a_server(__doc__, FULL, SHORT, measure))
