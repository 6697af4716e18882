"""What tenants have used, in memory."""

from collections.abc import Mapping

from sessions.store.admission_limits import BILLED_KEPT_S
from sessions.store.amounts import PARTS, Amounts
from sessions.store.ordered_set import OrderedSet


class Bills:
    def __init__(self) -> None:
        self._of_tenant: dict[str, dict[str, int]] = {}
        self._of_session: dict[str, dict[str, int]] = {}
        self._last_billed = OrderedSet()

    def add(self, tenant: str, session_id: str, usage: Amounts, now_us: int) -> None:
        """`usage` is all so far: what is less than was told before is an old word, and changes nothing."""
        for old in self._last_billed.up_to(now_us - BILLED_KEPT_S * 1_000_000, len(self._last_billed)):
            self._last_billed.discard(old)
            del self._of_session[old]
        self._last_billed.put(session_id, now_us)
        billed = self._of_session.setdefault(session_id, {})
        bill = self._of_tenant.setdefault(tenant, {})
        for what, parts in usage:
            more = parts - billed.get(what, 0)
            if more > 0:
                billed[what] = parts
                bill[what] = bill.get(what, 0) + more

    def all(self) -> Mapping[str, Mapping[str, float]]:
        return {tenant: {what: parts / PARTS for what, parts in bill.items()} for tenant, bill in self._of_tenant.items() if bill}
