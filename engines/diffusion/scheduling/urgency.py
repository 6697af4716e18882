"""How long a job may still wait, in seconds: its slack."""

from engines.diffusion.scheduling import Member

PATIENCE_S = {"control": 0.1, "interactive": 1.0, "batch": 10.0}
"""A job without a deadline wants to be begun so long after it was there, and to go on so long after its last call."""
LONGEST_PATIENCE_S = 10.0
UNHURRIED_S = 0.1
"""The slack of such a job falls no lower: a deadline that is near goes before it. Among themselves the oldest goes first."""


def slack(member: Member, waits_since: float, call_s: float, now: float) -> float:
    """With a deadline: what is left when its calls to come take `call_s` each. `waits_since` is its last call, or its arrival."""
    if member.deadline is not None:
        return member.deadline - now - member.calls_left * call_s
    patience = PATIENCE_S.get(member.service_class, LONGEST_PATIENCE_S)
    waited = now - waits_since
    if waited > patience:
        return patience - waited
    return max(member.released_at + patience - now, UNHURRIED_S)
