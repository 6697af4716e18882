"""People who interrupt: how soon they are heard, on the wire and in Chromium, and what it costs those who only pause.

    tests/run bench bargein [--short]

Prints one JSON object as its last line, and fails when anything stale was heard. Times in milliseconds; `premature` is a fraction
of 1.

`wire` and `stale_samples` are about the path of the sound: a whole server with the real voice activity, whose answers are tones,
made at once (fakes/fast_voice.py), one pitch for each, so that a sample tells which answer it is of. `speaker`, `turn`,
`engine_stop` and `premature` are of the default deployment, with its models: `speaker` and `turn` in Chromium, as WebAudio gets
the sound.
"""

import asyncio
import sys
from itertools import cycle, islice
from typing import Any

import msgspec

from bench import page_talk, wire
from bench.command import chosen, note, reported
from bench.cut_off import cut_off
from bench.engines_stop import engines_stop_ms
from bench.fast_server import fast_server
from bench.server import Server, running_server
from bench.voice import all_questions, percentile, spread, with_pauses
from recordings import QUESTIONS, beginning, read_by_espeak, read_sentences, spoken_commands


class Plan(msgspec.Struct, frozen=True):
    """How much of each measurement; the short form only shows that everything still works. Of `calls` at once each is interrupted
    so often. `room_s` for an answer in a turn: its 16 tokens are some 5 s of speech."""

    calls: int
    interruptions: int
    speaker: int
    engine_stops: int
    turns: int
    room_s: float
    synthetic: int
    paused: int


FULL = Plan(calls=6, interruptions=34, speaker=12, engine_stops=8, turns=12, room_s=6.0, synthetic=12, paused=48)
SHORT = Plan(calls=5, interruptions=4, speaker=0, engine_stops=0, turns=0, room_s=0.0, synthetic=0, paused=0)
STORY_SENTENCES = 12
PAUSED_AT_ONCE = 6
READ = 12
"""Of the questions, by espeak-ng: with the human voices 26 onsets."""
INTERRUPTION_S = 1.5


async def measure(plan: Plan) -> dict[str, Any]:
    result: dict[str, Any] = {}
    async with fast_server(sentences=STORY_SENTENCES) as server:
        result |= await on_wire(server, plan)
    if plan.speaker:
        async with running_server("--log-level", "warning") as server:
            result |= await with_models(server, plan)
    return result


async def on_wire(server: Server, plan: Plan) -> dict[str, Any]:
    voices = [*spoken_commands(), *read_sentences(), *map(read_by_espeak, QUESTIONS[:READ])]
    asked = islice(cycle(beginning(voice, INTERRUPTION_S) for voice in voices), plan.calls * (plan.interruptions + 1))
    cut = await cut_off(server, list(asked), plan.calls)
    note(f"on the wire {cut}")
    return {
        "wire_p95_ms": percentile(cut.taken_ms, 0.95),
        "wire_p50_ms": percentile(cut.taken_ms, 0.5),
        "stale_samples": cut.stale_samples,
        "interruptions": len(cut.taken_ms),
    }


async def with_models(server: Server, plan: Plan) -> dict[str, Any]:
    asked = await all_questions(server, plan.synthetic)
    stops = await engines_stop_ms(server, plan.engine_stops)
    note(f"engines stop after {stops}")
    speaker = await page_talk.interruptions_ms(server, spread(asked, plan.speaker))
    note(f"in Chromium {speaker}")
    early = await wire.ended_early(server, with_pauses(asked, plan.paused), PAUSED_AT_ONCE)
    note(f"cut off: {early}")
    talk = await page_talk.short_turns(server, spread(asked, plan.turns), plan.room_s)
    for turn in talk.turns:
        note(str(turn))
    latencies = [turn.latency_ms for turn in talk.turns if turn.latency_ms is not None]
    return {
        "speaker_p95_ms": percentile(speaker, 0.95),
        "speaker_p50_ms": percentile(speaker, 0.5),
        "speaker_interruptions": len(speaker),
        "engine_stop_p99_ms": percentile(stops, 0.99),
        "engine_stops": len(stops),
        "turn_p50_ms": percentile(latencies, 0.5),
        "turn_p95_ms": percentile(latencies, 0.95),
        "turns": len(talk.turns),
        "answered": len(latencies),
        "early": sum(turn.early for turn in talk.turns),
        "over_answer": sum(turn.over_answer for turn in talk.turns),
        "premature": round(len(early) / plan.paused, 3),
    }


async def main() -> None:
    result = await reported(measure(chosen(__doc__, FULL, SHORT)))
    if result["stale_samples"]:
        sys.exit("a cut answer was heard again")


if __name__ == "__main__":
    asyncio.run(main())
