"""What tenants have used, in memory."""

from collections.abc import Mapping

from sessions.store.admission_limits import BILLED_KEPT_S
from sessions.store.amounts import PARTS, Amounts
from sessions.store.ordered_set import OrderedSet


class Bills:
    def __init__(self) -> None:
        self._of_tenant: dict[str, dict[str, int]] = {}
        self._of_session: dict[str, dict[str, int]] = {}
        self._kept_until_us = OrderedSet()

    def add(self, tenant: str, session_id: str, usage: Amounts, life_s: float, now_us: int) -> None:
        """`usage` is all so far: what is less than was told before is an old word, and changes nothing."""
        for old in self._kept_until_us.up_to(now_us, len(self._kept_until_us)):
            self._kept_until_us.discard(old)
            del self._of_session[old]
        self._kept_until_us.put(session_id, now_us + round((BILLED_KEPT_S + life_s) * 1_000_000))
        billed = self._of_session.setdefault(session_id, {})
        bill = self._of_tenant.setdefault(tenant, {})
        for what, parts in usage:
            more = parts - billed.get(what, 0)
            if more > 0:
                billed[what] = parts
                bill[what] = bill.get(what, 0) + more

    def all(self) -> Mapping[str, Mapping[str, float]]:
        return {tenant: {what: parts / PARTS for what, parts in bill.items()} for tenant, bill in self._of_tenant.items() if bill}
