"""Voice conversations against the default deployment: latency, premature ends, underruns, intelligibility.

    tests/run bench voice [--short] [--url http://127.0.0.1:8080 --pid N]

Prints one JSON object as its last line. Times in milliseconds; shares are fractions of 1.
"""

import asyncio
import io
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import aiohttp
import jiwer
import msgspec
import numpy as np
import soundfile

import recordings
from bench.command import measured_at_a_server, note
from bench.conversation import Conversation, Turn
from bench.decoding import decode_ratio
from bench.playback import underruns
from bench.server import Server
from recordings import RATE, Utterance

SHORT_ANSWER = "Answer in one short sentence."
LONG_ANSWER_TOKENS = 130
PAUSES_MS = (200, 300, 400, 500, 600, 700)
PLACES = (0.35, 0.5, 0.65)


class Plan(msgspec.Struct, frozen=True):
    """How much of each measurement; the short form only shows that everything still works."""

    synthetic: int
    turns: int
    paused: int
    crowds: tuple[int, ...]
    turns_in_crowd: int
    long_answer: bool


FULL = Plan(synthetic=30, turns=40, paused=100, crowds=(2, 4), turns_in_crowd=4, long_answer=True)
SHORT = Plan(synthetic=2, turns=1, paused=1, crowds=(), turns_in_crowd=1, long_answer=False)


async def speak(server: Server, text: str, voice: str | None = None) -> Utterance:
    """A question read by the server's own voice."""
    body = {"model": "piper-joe", "input": text, "response_format": "wav", "voice": voice or "joe"}
    async with aiohttp.ClientSession() as http, http.post(f"{server.url}/v1/audio/speech", json=body) as answer:
        answer.raise_for_status()
        wav = await answer.read()
    samples, rate = recordings.read_file(io.BytesIO(wav))
    assert rate == RATE
    return Utterance(f"joe: {text}", recordings.trim(samples), text)


async def all_questions(server: Server, synthetic: int) -> list[Utterance]:
    """Humans first, then `synthetic` questions by two synthetic speakers in turn."""
    asked = [*recordings.spoken_commands(), *recordings.read_sentences()]
    for index, text in enumerate(recordings.QUESTIONS[:synthetic]):
        asked.append(recordings.read_by_espeak(text) if index % 3 == 2 else await speak(server, text))
    return asked


def spread(utterances: Sequence[Utterance], count: int) -> list[Utterance]:
    """`count` of them, evenly over the whole list."""
    places = np.linspace(0, len(utterances) - 1, min(count, len(utterances)))
    return [utterances[int(place)] for place in places]


def with_pauses(asked: Sequence[Utterance], count: int) -> list[Utterance]:
    """Recordings with an inner pause of 200–700 ms, in every combination of recording, length and place."""
    long_enough = [utterance for utterance in asked if utterance.seconds > 1.6]
    made: list[Utterance] = []
    for round_number in range(count):
        source = long_enough[round_number % len(long_enough)]
        pause, place = PAUSES_MS[round_number % len(PAUSES_MS)], PLACES[round_number // len(PAUSES_MS) % len(PLACES)]
        made.append(recordings.with_inner_pause(source, pause, place))
    return made


async def converse(server: Server, utterances: Iterable[Utterance]) -> list[Turn]:
    """One conversation; each question waits for the end of the answer before it."""
    turns: list[Turn] = []
    async with Conversation(server.url, {"instructions": SHORT_ANSWER}) as talk:
        for utterance in utterances:
            turn = await talk.ask(utterance)
            turns.append(turn)
            note(f"{turn.latency_ms and round(turn.latency_ms)} ms  {turn.heard!r} → {turn.answer[:60]!r} {turn.metrics}")
    return turns


async def ended_early(server: Server, utterances: Sequence[Utterance], at_once: int = 4) -> float:
    """Share of utterances that were committed before they had ended."""
    session = {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "create_response": False}}}}
    early: list[str] = []

    async def listen(mine: Sequence[Utterance]) -> None:
        async with Conversation(server.url, session) as talk:
            for utterance in mine:
                turn = await talk.listen_only(utterance, quiet_after_s=1.6)
                if any(at < turn.speech_end_at for at in turn.committed_at):
                    early.append(utterance.name)
                    note(f"cut off: {utterance.name}")

    await asyncio.gather(*(listen(utterances[first::at_once]) for first in range(at_once)))
    return len(early) / len(utterances)


async def long_answer(server: Server) -> Turn:
    async with Conversation(server.url) as talk:
        return await talk.write("Tell me a long story about a ship and its crew.", {"max_output_tokens": LONG_ANSWER_TOKENS})


async def transcribe(server: Server, pcm: bytes) -> str:
    wav = io.BytesIO()
    soundfile.write(wav, np.frombuffer(pcm, "<i2"), RATE, format="WAV")
    form = aiohttp.FormData()
    form.add_field("file", wav.getvalue(), filename="answer.wav", content_type="audio/wav")
    form.add_field("model", "whisper-tiny-en")
    async with aiohttp.ClientSession() as http, http.post(f"{server.url}/v1/audio/transcriptions", data=form) as answer:
        answer.raise_for_status()
        return (await answer.json())["text"]


async def word_error_rate(server: Server, turns: Sequence[Turn]) -> float:
    """Of the answers' audio, transcribed again, against their transcripts."""
    said, heard = list[str](), list[str]()
    for turn in turns:
        if turn.answer and turn.status == "completed":
            said.append(plain(turn.answer))
            heard.append(plain(await transcribe(server, turn.pcm)))
    return jiwer.wer(said, heard)


def plain(text: str) -> str:
    """Lower case words without punctuation; digits as the speaker says them."""
    from engines.speakable import speakable

    return " ".join("".join(c if c.isalnum() else " " for c in speakable(text).lower().replace("'", "")).split())


def percentile(values: Sequence[float], share: float) -> float:
    return round(float(np.percentile(values, share * 100)), 1) if values else float("nan")


def figures(turns: Sequence[Turn]) -> dict[str, Any]:
    latencies = [turn.latency_ms for turn in turns if turn.latency_ms is not None]
    return {
        "turns": len(turns),
        "answered": len(latencies),
        "turn_p50_ms": percentile(latencies, 0.5),
        "turn_p95_ms": percentile(latencies, 0.95),
        "underruns": sum(underruns(turn.arrivals) for turn in turns),
    }


def parts(turns: Sequence[Turn]) -> dict[str, float]:
    """Medians of what the server itself says about its answers."""
    names = ("decision_ms", "transcript_ms", "ttft_ms", "ttfa_ms", "total_ms", "rtf")
    gathered = {name: [turn.metrics[name] for turn in turns if turn.metrics.get(name) is not None] for name in names}
    return {name: round(statistics.median(values), 2) for name, values in gathered.items() if values}


async def crowd(server: Server, asked: Sequence[Utterance], people: int, turns_each: int) -> dict[str, Any]:
    """`people` conversations at once, each with other questions."""
    everyone = await asyncio.gather(*(converse(server, spread(asked[person::people], turns_each)) for person in range(people)))
    return figures([turn for turns in everyone for turn in turns])


async def measure(server: Server, plan: Plan) -> dict[str, Any]:
    note(f"ready after {server.ready_s:.1f} s")
    asked = await all_questions(server, plan.synthetic)
    turns = await converse(server, spread(asked, plan.turns))
    told = [await long_answer(server)] if plan.long_answer else []
    result = {
        **figures([*turns, *told]),
        "premature": round(await ended_early(server, with_pauses(asked, plan.paused)), 3),
        "long_answer_s": round(len(told[0].pcm) / 2 / RATE, 1) if told else None,
        "decode_ratio": decode_ratio(),
        "wer": round(await word_error_rate(server, [*turns, *told]), 3),
        "ready_s": round(server.ready_s, 1),
        "parts": parts(turns),
        "by_sessions": {
            "1": figures(turns),
            **{str(people): await crowd(server, asked, people, plan.turns_in_crowd) for people in plan.crowds},
        },
    }
    result["gateway_mb"] = round(server.rss_mb(), 1)
    return result


if __name__ == "__main__":
    asyncio.run(measured_at_a_server(__doc__, FULL, SHORT, measure))
