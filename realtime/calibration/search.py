"""The largest number of sessions that holds its bars."""

from collections.abc import Callable

import msgspec

from realtime.calibration.probe import Probe, Verdict


class Found(msgspec.Struct, frozen=True):
    """`sessions` 0: not even one holds. `verdict` is that of the number found, or of the one."""

    sessions: int
    verdict: Verdict


async def largest(probe: Probe, most: int, say: Callable[[str], None]) -> Found:
    """From one upwards, a quarter at a time; where a bar breaks, by halves back to what holds. `most`: where it ends. A number is
    given up when it fails twice: anything else that runs on the machine may spoil it once."""
    first = await _tried(probe, 1, say)
    if not first.held:
        return Found(0, first)
    holds, breaks, found = 1, most + 1, first
    while breaks - holds > 1:
        sessions = _following(holds, breaks, most)
        verdict = await _tried(probe, sessions, say)
        if verdict.held:
            holds, found = sessions, verdict
        else:
            breaks = sessions
    return Found(holds, found)


def _following(holds: int, breaks: int, most: int) -> int:
    """Once one has broken, half way between."""
    return min(most, holds + max(1, holds // 4)) if breaks > most else (holds + breaks) // 2


async def _tried(probe: Probe, sessions: int, say: Callable[[str], None]) -> Verdict:
    verdict = await _run(probe, sessions, say)
    return verdict if verdict.held else await _run(probe, sessions, say)


async def _run(probe: Probe, sessions: int, say: Callable[[str], None]) -> Verdict:
    verdict = await probe.run(sessions)
    figures = ", ".join(f"{name} {value:g}" for name, value in verdict.figures.items())
    say(f"{sessions} at once: {figures}; {'too much: ' + ', '.join(verdict.broken) if verdict.broken else 'all bars hold'}")
    return verdict
