"""How many of those whose turn it is share a call."""

from collections.abc import Sequence
from math import inf

from engines.diffusion.scheduling import Member
from engines.diffusion.scheduling.costs import Curve


def together(ranked: Sequence[Member], curve: Curve, limit: int, now: float, *, to_the_end: bool) -> tuple[Member, ...]:
    """The first of `ranked`, who have one key, and those after it: as many as fit in `limit` rows, as make no one late who comes
    before them, and as are worth it: the number with most rows a second.

    `to_the_end`: they stay together for all their calls; else for the next one alone.
    """
    sizes: list[int] = []
    chosen: list[Member] = []
    rows, longest_s = 0, inf
    for member in ranked:
        more = rows + member.rows
        if chosen and more > limit:
            continue  # a smaller one may still fit
        call_s = curve.of(more)
        if chosen and call_s > longest_s:
            break
        rows = more
        chosen.append(member)
        sizes.append(rows)
        if rows >= limit:
            break
        bearable_s = _longest_call_s(member, curve, now, to_the_end=to_the_end)
        if bearable_s >= call_s:  # else it is late by its own, and takes what it gets
            longest_s = min(longest_s, bearable_s)
    return tuple(chosen[: curve.best(sizes) + 1])


def _longest_call_s(member: Member, curve: Curve, now: float, *, to_the_end: bool) -> float:
    """The next call may take so long, or each of its calls."""
    if member.deadline is None:
        return inf
    left_s = member.deadline - now
    if to_the_end:
        return left_s / max(member.calls_left, 1)
    return left_s - (member.calls_left - 1) * curve.of(member.rows)
