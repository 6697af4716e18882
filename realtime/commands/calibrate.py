"""Find how many sessions this machine runs side by side, and write it down for admission."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from realtime.calibration import voice
from realtime.calibration.machine import machine_words
from realtime.calibration.probe import Bars, Probe, ProbeFailed
from realtime.calibration.result import keep
from realtime.calibration.search import Found, largest
from realtime.calibration.server import calibrated_server
from realtime.calibration.sound import questions
from realtime.catalogue import catalogue
from realtime.deployment import DEFAULT_FILE, Deployment, load, seats_file
from sessions.admission.seats import VOICE
from sessions.admission.settings import CalibratedSeats

MOST = 64
READY_S = 300.0


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for. `quick`: enough to see that it works, too little to rely on."""

    url: str
    deployment: Deployment
    bars: Bars
    quick: bool


async def _voice(wish: Wish) -> Probe:
    names = catalogue(wish.deployment.graph)
    if not names.default_voice:
        raise ProbeFailed("calibration needs a voice that speaks the questions; this deployment has none")
    asked = await questions(wish.url, names.speakers[names.default_voice], names.default_voice)
    await voice.VoiceProbe(wish.url, asked, turns=1).run(1)  # the first answer of a server takes longer than all others
    return voice.VoiceProbe(wish.url, asked, {**voice.BARS, **wish.bars}, turns=1 if wish.quick else voice.TURNS)


PROBES: Mapping[str, Callable[[Wish], Awaitable[Probe]]] = {VOICE: _voice}
BARS: Mapping[str, Bars] = {VOICE: voice.BARS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", default=VOICE, choices=PROBES, help="of session (default: %(default)s)")
    parser.add_argument("--deployment", type=Path, default=DEFAULT_FILE, metavar="FILE", help="what runs (default: %(default)s)")
    parser.add_argument("--most", type=_count, default=MOST, metavar="N", help="do not try more (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one question each, two at most: only to see that it works")
    help_bar = "another bar than the usual one, such as turn_p95_ms=1500; repeatable"
    parser.add_argument("--bar", action="append", type=_bar, default=[], metavar="NAME=MOST", help=help_bar)
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write it (default: beside the deployment)")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 1 when not even one session holds its bars: then nothing is written. Raises ProbeFailed, ConfigurationError."""
    for name, _ in arguments.bar:
        if name not in BARS[arguments.kind]:
            raise ProbeFailed(f"--bar: expected one of {', '.join(BARS[arguments.kind])}, got {name}")
    deployment = load(arguments.deployment)
    most = min(arguments.most, 2) if arguments.quick else arguments.most
    found = asyncio.run(_calibrate(arguments, deployment, most))
    if not found.sessions:
        _say("not even one holds its bars on this machine; nothing is written")
        return 1
    file: Path = arguments.out or seats_file(arguments.deployment)
    measured = CalibratedSeats(seats=found.sessions, measured=found.verdict.figures, machine=machine_words())
    keep(file, deployment, arguments.kind, measured)
    _say(f"{found.sessions} sessions of kind {arguments.kind} hold their bars; written to {file}")
    return 0


async def _calibrate(arguments: argparse.Namespace, deployment: Deployment, most: int) -> Found:
    _say("starting the server of this deployment; let nothing else run on this machine meanwhile")
    async with calibrated_server(deployment, most, READY_S) as url:
        wish = Wish(url=url, deployment=deployment, bars=dict(arguments.bar), quick=arguments.quick)
        return await largest(await PROBES[arguments.kind](wish), most, _say)


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {text}")
    return int(text)


def _bar(text: str) -> tuple[str, float]:
    name, _, most = text.partition("=")
    return name, float(most)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
