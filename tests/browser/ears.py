"""What `ears.js` heard, and where on its clock the microphone's file was.

The clock is the browser's audio clock. Both sides are tapped where WebAudio gets them: what the microphone's device takes before
that and the output device after it is not included (headless Chromium has neither), everything between is: encoding, network,
the server, the browser's jitter buffer, decoding.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from playwright.async_api import Page

from browser.microphone import RATE, Script, Spoken
from recordings import Samples

QUANTUM = 128
SMOOTHED_QUANTA = 4
VOICED_RMS = 0.01
"""As `ears.js` has them: so the file is heard in Python as its sound is heard in the browser."""
MARGIN_S = 0.1
"""Of silence around an utterance, so that its own beginning and end count."""
LEAST_AGREEMENT = 0.95
"""Of the quanta of an utterance as it was heard with those of the file."""
JUMP_S = 1.0
"""How far the file may have slipped since the utterance before: a busy machine drops or repeats pieces of it."""

Edge = tuple[bool, float]


class Run(msgspec.Struct, frozen=True):
    """A stretch of voiced sound, in seconds."""

    begin: float
    end: float


class Told(msgspec.Struct, frozen=True):
    """An event of the data channel, and when the page got it."""

    at: float
    event: dict[str, Any]

    @property
    def kind(self) -> str:
        return self.event["type"]


class Buffered(msgspec.Struct, frozen=True):
    """The jitter buffer's totals at one moment: packets, samples that it had to make up, samples given out and the seconds that
    they had waited, all together."""

    at: float
    received: int
    lost: int
    concealed: int
    emitted: int
    waited_s: float


class Placed(msgspec.Struct, frozen=True):
    """An utterance of the file on the ears' clock. `agreement`: the share of it that was heard as it was written."""

    spoken: Spoken
    begin: float
    end: float
    agreement: float


class Heard(msgspec.Struct, frozen=True):
    """`events` and `stats` of every call of the page; `connects_ms` from the request of the offer to the connection."""

    microphone: list[Run]
    remote: list[Run]
    events: list[Told]
    stats: list[Buffered]
    connects_ms: list[float]
    now: float

    def waited_ms(self, begin: float, end: float) -> float:
        """How long the jitter buffer held what it gave out in this span, in the mean; 0 when it gave out nothing."""
        inside = [one for one in self.stats if begin <= one.at <= end]
        given = inside[-1].emitted - inside[0].emitted if inside else 0
        return round((inside[-1].waited_s - inside[0].waited_s) / given * 1000, 1) if given else 0.0

    def first_voiced(self, after: float, before: float) -> float | None:
        """When the remote side is first audible in this span."""
        return next((max(run.begin, after) for run in self.remote if run.end > after and run.begin < before), None)

    def last_voiced(self, after: float, before: float) -> float | None:
        """Until when the remote side is audible in this span."""
        return next((min(run.end, before) for run in reversed(self.remote) if run.end > after and run.begin < before), None)


async def heard(page: Page) -> Heard:
    """Everything since the page was loaded."""
    report = await page.evaluate("ears.report()")
    microphone, remote = report["edges"]
    return Heard(
        microphone=runs(microphone, report["now"]),
        remote=runs(remote, report["now"]),
        events=[Told(at, msgspec.json.decode(text)) for at, text in report["events"]],
        stats=msgspec.convert(report["stats"], list[Buffered]),
        connects_ms=report["connects"],
        now=report["now"],
    )


async def listened(page: Page, until_s: float) -> None:
    """Returns when the ears' clock has come so far."""
    await page.wait_for_function("until => ears.now() > until", arg=until_s, polling=200, timeout=0)


def runs(edges: Sequence[Edge], now: float) -> list[Run]:
    closed = [*edges, (False, now)] if edges and edges[-1][0] else edges
    return [Run(begin, end) for (voiced, begin), (_, end) in pairwise(closed) if voiced]


def voiced_runs(samples: Samples, rate: int = RATE) -> list[Run]:
    """What the ears would report of these samples."""
    quantum_s = QUANTUM / rate
    blocks = samples[: len(samples) // QUANTUM * QUANTUM].reshape(-1, QUANTUM)
    energy = np.concatenate([np.zeros(SMOOTHED_QUANTA - 1), (blocks.astype(np.float64) ** 2).mean(axis=1)])
    voiced = np.convolve(energy, np.ones(SMOOTHED_QUANTA) / SMOOTHED_QUANTA, mode="valid") > VOICED_RMS**2
    changes = np.flatnonzero(np.diff(np.concatenate([[False], voiced]).astype(int)))
    return runs([(bool(voiced[place]), int(place) * quantum_s) for place in changes], len(voiced) * quantum_s)


def place(script: Script, heard: Sequence[Run]) -> list[Placed]:
    """Where each utterance was heard: where its voiced stretches agree best with what was heard. The first sound heard must be
    the script's first. Utterances that were not heard in one piece are left out.
    """
    in_file = voiced_runs(script.samples)
    offset = heard[0].begin - in_file[0].begin
    places: list[Placed] = []
    for spoken in script.spoken:
        begin, end = spoken.begin_s - MARGIN_S, spoken.end_s + MARGIN_S
        wanted = _mask(in_file, begin, end)
        around = _mask(heard, begin + offset - JUMP_S, end + offset + JUMP_S)
        agreements = (np.lib.stride_tricks.sliding_window_view(around, len(wanted)) == wanted).mean(axis=1)
        best = int(agreements.argmax())
        if agreements[best] < LEAST_AGREEMENT:
            continue
        offset += float(best * QUANTUM / RATE - JUMP_S)
        places.append(Placed(spoken, spoken.begin_s + offset, spoken.end_s + offset, round(float(agreements[best]), 3)))
    return places


def _mask(runs: Sequence[Run], begin: float, end: float) -> NDArray[np.bool_]:
    """One flag for each quantum of this span."""
    mask = np.zeros(round((end - begin) * RATE / QUANTUM), dtype=np.bool_)
    for run in runs:
        first, last = (round((at - begin) * RATE / QUANTUM) for at in (run.begin, run.end))
        mask[max(first, 0) : max(last, 0)] = True
    return mask
