"""The set: scenes of a user and an agent, each with its label.

While the agent speaks its passage, the user interrupts it, or hums, coughs and types, or is silent while the microphone hears
the agent; or the user asks something, with and without a pause inside, and the end of that turn is to be found.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, product
from typing import Literal, TypeAlias

import msgspec
import numpy as np

import recordings
from recordings import RATE, Samples, Utterance
from turn_set import noises
from turn_set.voices import SPEAKERS, say

Kind: TypeAlias = Literal["sentence", "word", "backchannel", "body", "echo", "pending", "turn", "paused"]
Room: TypeAlias = Literal["quiet", "pink 10 dB", "pink 5 dB", "babble 10 dB", "babble 5 dB", "echo -20 dB", "echo -30 dB"]

USER_DB, BODY_DB, QUIET_DB = -24.0, -28.0, -65.0
ANSWER = (
    "The city of Rome was founded a very long time ago.",
    "It grew from a small town into the capital of a large empire, and people still visit its streets, fountains and churches.",
    "If you like history, you could spend a week there and not see everything.",
    "In the summer it is hot, so it is better to travel in April or in May.",
    "Most visitors begin with the Colosseum, walk through the Forum, and have lunch near the Pantheon.",
)
BACKCHANNELS = ("Mm-hmm.", "Uh-huh.", "Yeah.", "Right.", "Okay.", "I see.")
WORDS = ("Stop.", "Wait.", "No.", "Hold on.", "Stop it.", "Excuse me.")
SENTENCES = (
    "No, that's not what I meant.",
    "Actually, I have another question.",
    "Can you tell me about Paris instead?",
    "Please speak a little slower.",
)
BODIES = {"cough": noises.cough, "throat": noises.throat, "knock": noises.knock, "keys": noises.keys, "breath": noises.breath}
EARLY_S, LATE_S = 1.8, 4.5
"""When the user is heard over the agent: while an echo canceller would still be learning, and later."""
AFTER_S = 2.2
ECHO_DELAYS_MS = (50, 150, 300)
PAUSES_MS, PLACES = (200, 300, 400, 500, 600, 700), (0.35, 0.5, 0.65)
NOISY: tuple[Room, ...] = ("pink 10 dB", "babble 10 dB", "pink 5 dB", "babble 5 dB")
ECHOING: tuple[Room, ...] = ("echo -20 dB", "echo -30 dB")
TURN_ROOMS: tuple[Room, ...] = ("quiet", "pink 10 dB", "quiet", "babble 10 dB", "quiet", "pink 5 dB")
BEFORE_S = 0.5
PENDING_MS = (560, 700, 900)
"""Between the end of a question and the first sound of its answer."""


class Feedback(msgspec.Struct, frozen=True):
    """What the agent plays comes back into the microphone, `delay_ms` later, out of a room drawn from `seed`."""

    gain_db: float
    delay_ms: int
    seed: int


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """`microphone` is what it hears but for the feedback. `agent_speaks` from the beginning. Labels, in milliseconds: `onset_ms`
    of what is meant to interrupt, None where nothing is; `end_ms` of the user's turn, None where there is none."""

    name: str
    kind: Kind
    room: Room
    microphone: Samples
    agent_speaks: bool
    feedback: Feedback | None = None
    onset_ms: int | None = None
    end_ms: int | None = None


class Heard(msgspec.Struct, frozen=True):
    """One sound of the user, made when it is needed."""

    name: str
    kind: Kind
    make: Callable[[], Samples]
    meant: bool


Made: TypeAlias = tuple[Kind, Callable[[], Scene]]


def scenes(of_each: int) -> Iterator[Scene]:
    """The first so many of each kind."""
    counts: Counter[Kind] = Counter()
    for kind, make in chain(_over_the_agent(), _fed_back(), _pending(), _turns()):
        counts[kind] += 1
        if counts[kind] <= of_each:
            yield make()


def _over_the_agent() -> Iterator[Made]:
    sounds = [*_utterances(), *_bodies()]
    for place, sound in enumerate(sounds):
        yield sound.kind, partial(_one_over_the_agent, sound, "quiet", place)
    for place, sound in enumerate(sounds):
        yield sound.kind, partial(_one_over_the_agent, sound, NOISY[place % len(NOISY)], place)
        if place % 2 and sound.kind != "body":
            yield sound.kind, partial(_one_over_the_agent, sound, ECHOING[place // 2 % 2], place)


def _utterances() -> Iterator[Heard]:
    meant: tuple[tuple[Kind, Sequence[str]], ...] = (("word", WORDS), ("sentence", SENTENCES))
    for kind, texts in meant:
        for text, who in product(texts, SPEAKERS):
            yield Heard(f"{who}: {text}", kind, partial(say, who, text), True)
    for each in [*recordings.read_sentences(), *recordings.spoken_commands()[:4]]:
        yield Heard(each.name, "sentence", partial(_beginning, each), True)
    for text, who in product(BACKCHANNELS, SPEAKERS):
        yield Heard(f"{who}: {text}", "backchannel", partial(say, who, text), False)
    for seed in range(6):
        yield Heard(f"hum {seed}", "backchannel", partial(noises.hum, seed), False)


def _beginning(utterance: Utterance) -> Samples:
    return utterance.samples[: 3 * RATE]


def _bodies() -> Iterator[Heard]:
    for (name, make), seed in product(BODIES.items(), range(4)):
        yield Heard(f"{name} {seed}", "body", partial(make, seed), False)


def _one_over_the_agent(sound: Heard, room: Room, place: int) -> Scene:
    at_s = EARLY_S if place % 3 == 0 else LATE_S
    loud = noises.at_level(sound.make(), BODY_DB if sound.kind == "body" else USER_DB)
    microphone = _silence(at_s + len(loud) / RATE + AFTER_S)
    return Scene(
        name=sound.name,
        kind=sound.kind,
        room=room,
        microphone=_room(_mixed(microphone, loud, at_s), room, place),
        agent_speaks=True,
        feedback=_feedback(room, ECHO_DELAYS_MS[place % len(ECHO_DELAYS_MS)], place),
        onset_ms=round(at_s * 1000) if sound.meant else None,
    )


def _fed_back() -> Iterator[Made]:
    for place, (room, delay_ms) in enumerate(product(ECHOING, ECHO_DELAYS_MS)):
        yield "echo", partial(_one_fed_back, room, delay_ms, place)


def _one_fed_back(room: Room, delay_ms: int, place: int) -> Scene:
    return Scene(
        name=f"echo after {delay_ms} ms",
        kind="echo",
        room=room,
        microphone=_room(_silence(12.0), room, place),
        agent_speaks=True,
        feedback=_feedback(room, delay_ms, place),
    )


def _pending() -> Iterator[Made]:
    for place, (name, after_ms) in enumerate(product(BODIES, PENDING_MS)):
        yield "pending", partial(_one_pending, name, after_ms, place)


def _one_pending(name: str, after_ms: int, place: int) -> Scene:
    question = noises.at_level(say("joe", recordings.QUESTIONS[place % len(BODIES)]), USER_DB)
    noise = noises.at_level(BODIES[name](place), BODY_DB)
    end_s = BEFORE_S + len(question) / RATE
    microphone = _mixed(_mixed(_silence(end_s + 4.0), question, BEFORE_S), noise, end_s + after_ms / 1000)
    return Scene(
        name=f"{name} {after_ms} ms after",
        kind="pending",
        room="quiet",
        microphone=_room(microphone, "quiet", place),
        agent_speaks=False,
    )


def _turns() -> Iterator[Made]:
    """People first, then the agent's own voice as a user's."""
    people = [*recordings.read_sentences(), *recordings.spoken_commands()]
    asked = [partial(_same, each) for each in people] + [partial(_read, text) for text in recordings.QUESTIONS[:20]]
    for place, make in enumerate(asked):
        yield "turn", partial(_one_turn, make, None, place)
    long = [partial(_same, each) for each in people if each.seconds > 1.6] + asked[len(people) :]
    for place in range(72):
        pause = PAUSES_MS[place % len(PAUSES_MS)], PLACES[place // len(PAUSES_MS) % len(PLACES)]
        yield "paused", partial(_one_turn, long[place % len(long)], pause, place)


def _same(utterance: Utterance) -> Utterance:
    return utterance


def _read(text: str) -> Utterance:
    return Utterance(f"joe: {text}", say("joe", text), text)


def _one_turn(make: Callable[[], Utterance], pause: tuple[int, float] | None, place: int) -> Scene:
    utterance = make() if pause is None else recordings.with_inner_pause(make(), *pause)
    loud, room = noises.at_level(utterance.samples, USER_DB), TURN_ROOMS[place % len(TURN_ROOMS)]
    microphone = np.concatenate([_silence(BEFORE_S), loud, _silence(2.0)])
    return Scene(
        name=utterance.name,
        kind="turn" if pause is None else "paused",
        room=room,
        microphone=_room(microphone, room, place),
        agent_speaks=False,
        end_ms=round(BEFORE_S * 1000 + len(loud) * 1000 / RATE),
    )


def _mixed(microphone: Samples, sound: Samples, at_s: float) -> Samples:
    start = int(at_s * RATE)
    microphone[start : start + len(sound)] += sound
    return microphone


def _silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * RATE), np.float32)


def _room(microphone: Samples, room: Room, place: int) -> Samples:
    count = len(microphone)
    if room.startswith(("pink", "babble")):
        below_db = float(room.split()[1])
        noise = noises.pink(count, place) if room.startswith("pink") else noises.babble(_tables(), count, place)
        return microphone + _mean_at(noise, USER_DB - below_db)
    return microphone + _mean_at(noises.pink(count, place), QUIET_DB)


def _mean_at(noise: Samples, level_db: float) -> Samples:
    return (noise * (10 ** (level_db / 20) / np.sqrt(np.square(noise).mean()))).astype(np.float32)


def _tables() -> Sequence[Samples]:
    return [each.samples for each in recordings.read_sentences()]


def _feedback(room: Room, delay_ms: int, seed: int) -> Feedback | None:
    return Feedback(float(room.split()[1]), delay_ms, seed) if room.startswith("echo") else None
