"""Turn-taking on the labelled set: who is taken to interrupt, where turns are taken to end.

    tests/run bench turns [--short]

Prints one JSON object as its last line. `interrupt` is of all scenes in which the agent speaks or is about to,
`onset_cancels` the same with every guard off; `end_of_turn` of the user's questions. Times in milliseconds of audio, shares as
fractions of 1.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from bench.command import chosen, note, reported
from bench.virtual_call import AGENT_DB, SLOT_MS, SLOT_SAMPLES, CallGraph, Ears, Passage, SpeakerPlayout, Timeline
from engines.models.silero_vad import SileroVad
from engines.models.smart_turn import SmartTurn
from engines.models.vllm_text import VllmText
from engines.models.whisper import Whisper
from engines.weights import directory
from fakes.voice_client import UNGUARDED
from recordings import RATE, Samples, to_pcm
from sessions.voice.commands import AppendAudio, CreateResponse
from sessions.voice.config import SemanticVad, VoiceConfig
from sessions.voice.events import AudioCommitted, AudioDelta, Event, PlaybackCleared, ResponseDone
from sessions.voice.session import VoiceSession
from sessions.voice.settings import VoiceSettings
from turn_set import voices
from turn_set.scenes import ANSWER, Feedback, Scene, scenes

EARLY_MS = 250
"""A turn may be ended so long before the label: recordings fade."""
ECHOES = 8
PROGRESS = 25
WAITS = ("wait_p50_ms", "wait_p95_ms")


class Outcome(msgspec.Struct, frozen=True):
    """Of one scene: when the agent was interrupted, when turns were committed, and where the agent was held without need."""

    scene: Scene
    interrupted_ms: float | None
    committed_ms: tuple[float, ...]
    first_hold_ms: int | None
    held_ms: int

    @property
    def is_found(self) -> bool:
        """What was meant to interrupt did."""
        onset_ms, last_ms = self.scene.onset_ms, len(self.scene.microphone) * 1000 / RATE
        return onset_ms is not None and self.interrupted_ms is not None and onset_ms <= self.interrupted_ms <= last_ms

    @property
    def is_wrong(self) -> bool:
        return not self.is_found if self.scene.onset_ms is not None else self.interrupted_ms is not None

    @property
    def gate_ms(self) -> float | None:
        """Onset of what is meant to interrupt → the agent is held."""
        return self._since_onset(self.first_hold_ms)

    @property
    def confirmation_ms(self) -> float | None:
        return self._since_onset(self.interrupted_ms) if self.is_found else None

    def _since_onset(self, at_ms: float | None) -> float | None:
        return None if at_ms is None or self.scene.onset_ms is None else at_ms - self.scene.onset_ms


class Answerphone:
    """Reads the session's events, plays its sound and notes when things happened."""

    def __init__(self, session: VoiceSession, playout: SpeakerPlayout, timeline: Timeline) -> None:
        self.interrupted_ms: float | None = None
        self.committed_ms: list[float] = []
        self._session = session
        self._playout = playout
        self._timeline = timeline

    async def read(self) -> None:
        async for event in self._session.events():
            self._note(event)

    def _note(self, event: Event) -> None:
        match event:
            case AudioDelta(response_id=response_id, item_id=item_id, pcm=pcm):
                self._playout.put(response_id, item_id, pcm)
            case AudioCommitted():
                self.committed_ms.append(self._timeline.now_ms)
            case PlaybackCleared():
                self._interrupted()
            case ResponseDone(response=response) if response.reason == "turn_detected":
                self._interrupted()
            case _:
                pass

    def _interrupted(self) -> None:
        if self.interrupted_ms is None:
            self.interrupted_ms = self._timeline.now_ms


async def play(scene: Scene, ears: Ears, passage: Passage, settings: VoiceSettings, eagerness: str = "auto") -> Outcome:
    timeline, playout = Timeline(), SpeakerPlayout()
    graph = CallGraph(ears, passage, timeline)
    detection = msgspec.convert({"type": "semantic_vad", "eagerness": eagerness}, SemanticVad)
    detection = msgspec.structs.replace(detection, create_response=scene.end_ms is None)
    config = VoiceConfig(model="voice", instructions=settings.instructions, voice="joe", turn_detection=detection)
    numbers = iter(range(1_000_000))
    session = VoiceSession(
        graph, config, settings, {"joe": "audio"}, "sess", 1, timeline.clock, lambda prefix: f"{prefix}_{next(numbers)}", playout
    )
    phone = Answerphone(session, playout, timeline)
    async with asyncio.TaskGroup() as around, session:
        around.create_task(phone.read())
        if scene.agent_speaks:
            await session.handle(CreateResponse())
        for start in range(0, len(scene.microphone) - SLOT_SAMPLES, SLOT_SAMPLES):
            playout.next()
            heard = scene.microphone[start : start + SLOT_SAMPLES] + _echo(scene.feedback, playout.played)
            await session.handle(AppendAudio(to_pcm(heard)))
            await timeline.pass_ms(SLOT_MS)
    first_hold = next((at for at in playout.holds if scene.onset_ms is not None and at >= scene.onset_ms), None)
    return Outcome(scene, phone.interrupted_ms, tuple(phone.committed_ms), first_hold, playout.held_ms)


def _echo(feedback: Feedback | None, played: Samples) -> Samples:
    """What comes back of what has been played, in the present slot: by the straight way, and from a few walls."""
    echo = np.zeros(SLOT_SAMPLES, np.float32)
    if feedback is None:
        return echo
    random = np.random.default_rng(feedback.seed)
    ways_ms = np.concatenate([[0.0], np.sort(random.uniform(3, 90, ECHOES))])
    gains = np.concatenate([[1.0], 0.5 * 0.5 ** (ways_ms[1:] / 30) * random.choice([-1, 1], ECHOES)])
    gains *= 10 ** (feedback.gain_db / 20) / np.sqrt(np.square(gains).sum())
    for way_ms, gain in zip(ways_ms, gains, strict=True):
        end = len(played) - int((feedback.delay_ms + way_ms) * RATE / 1000)
        if end >= SLOT_SAMPLES:
            echo += np.float32(gain) * played[end - SLOT_SAMPLES : end]
    return echo


def interrupts(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Of the scenes with an agent. `held_ms` is what its listener lost, on average, where nobody meant to interrupt."""
    meant = [each for each in outcomes if each.scene.onset_ms is not None]
    others = [each for each in outcomes if each.scene.onset_ms is None]
    found = [each for each in meant if each.is_found]
    taken = sum(each.interrupted_ms is not None for each in outcomes)
    return {
        "precision": _share(len(found), taken),
        "recall": _share(len(found), len(meant)),
        "gate_p50_ms": _percentile([each.gate_ms for each in meant], 50),
        "gate_p95_ms": _percentile([each.gate_ms for each in meant], 95),
        "confirm_p50_ms": _percentile([each.confirmation_ms for each in meant], 50),
        "confirm_p95_ms": _percentile([each.confirmation_ms for each in meant], 95),
        "held_ms": round(float(np.mean([each.held_ms for each in others])), 1) if others else None,
        "by_class": _by_class(outcomes),
    }


def _by_class(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """How many scenes of each kind and room there are, and in how many of them the agent was interrupted."""
    counts: defaultdict[str, dict[str, int]] = defaultdict(lambda: {"scenes": 0, "interrupted": 0})
    for each in outcomes:
        count = counts[f"{each.scene.kind}, {each.scene.room.removesuffix(' dB')}"]
        count["scenes"] += 1
        count["interrupted"] += each.interrupted_ms is not None
    return dict(counts)


def ends(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Of the user's questions: an end is right when it is the first of its turn and not before the label."""
    right, ended, waits = 0, 0, list[float]()
    for each in outcomes:
        end_ms = each.scene.end_ms
        assert end_ms is not None
        ended += len(each.committed_ms) > 0
        if each.committed_ms and each.committed_ms[0] >= end_ms - EARLY_MS:
            right += 1
            waits.append(each.committed_ms[0] - end_ms)
    return {
        "precision": _share(right, ended),
        "recall": _share(right, len(outcomes)),
        "premature": _share(ended - right, len(outcomes)),
        "wait_p50_ms": _percentile(waits, 50),
        "wait_p95_ms": _percentile(waits, 95),
        "scenes": len(outcomes),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def _percentile(values: Sequence[float | None], percent: float) -> float | None:
    known = [value for value in values if value is not None]
    return round(float(np.percentile(known, percent)), 1) if known else None


def load_ears() -> Ears:
    """Some 20 s, most of them vLLM's."""
    options: dict[str, object] = {"warm_prompt": VoiceSettings().instructions}
    return Ears(
        SileroVad.load(directory("silero-vad"), {}),
        SmartTurn.load(directory("smart-turn"), {}),
        Whisper.load(directory("whisper-tiny-en"), {}),
        VllmText.load(directory("smollm2-135m-instruct"), options, 4),
    )


def make_passage() -> Passage:
    sounds = voices.passage(ANSWER)
    factor = np.float32(10 ** (AGENT_DB / 20) / np.sqrt(np.square(np.concatenate(sounds)).mean()))
    return Passage(ANSWER, tuple(sound * factor for sound in sounds))


async def measure(ears: Ears, of_each: int) -> dict[str, Any]:
    """`of_each` kind so many scenes at most."""
    passage, chosen = make_passage(), list(scenes(of_each))
    over_agent = [scene for scene in chosen if scene.end_ms is None]
    questions = [scene for scene in chosen if scene.end_ms is not None]
    note(f"{len(over_agent)} scenes with an agent, {len(questions)} questions")

    async def heard(label: str, part: Sequence[Scene], settings: VoiceSettings, eagerness: str = "auto") -> list[Outcome]:
        began, outcomes = time.monotonic(), list[Outcome]()
        for scene in part:
            outcomes.append(await play(scene, ears, passage, settings, eagerness))
            if len(outcomes) % PROGRESS == 0 or len(outcomes) == len(part):
                note(f"{label}: {len(outcomes)} scenes in {time.monotonic() - began:.0f} s")
        return outcomes

    guarded = await heard("guarded", over_agent, VoiceSettings())
    unguarded = await heard("onset cancels", over_agent, UNGUARDED)
    half = [scene for place, scene in enumerate(questions) if place % 4 < 2]  # each recording is there in quiet and in noise
    asked = {"low": half, "medium": questions, "high": half}
    eager = {each: ends(await heard(f"eagerness {each}", part, VoiceSettings(), each)) for each, part in asked.items()}
    for outcome in guarded:
        if outcome.is_wrong:
            scene = outcome.scene
            note(f"wrong: {scene.kind}, {scene.room}, {scene.name}: {outcome.interrupted_ms}, meant {scene.onset_ms}")
    return {
        "interrupt": interrupts(guarded),
        "onset_cancels": interrupts(unguarded),
        "end_of_turn": eager["medium"],
        "eagerness": {each: {name: eager[each][name] for name in ("premature", *WAITS)} for each in eager},
    }


async def measured(of_each: int) -> dict[str, Any]:
    began = time.monotonic()
    ears = await asyncio.get_running_loop().run_in_executor(None, load_ears)
    try:
        note(f"models loaded after {time.monotonic() - began:.0f} s")
        return await measure(ears, of_each)
    finally:
        ears.thinker.shutdown()


async def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    await reported(measured(chosen(__doc__, 1_000, 1)))


if __name__ == "__main__":
    asyncio.run(main())
