"""What each tenant may have: the deployment's `tenants:` section."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from sessions.identity.principal import is_name
from sessions.store.records import Priority

_PRIORITIES: dict[str, Priority] = {
    "control": Priority.CONTROL,
    "interactive": Priority.INTERACTIVE,
    "batch": Priority.BATCH,
}


class TenantSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    weight: Annotated[float, msgspec.Meta(gt=0.0)] = 1.0
    """Its share of what is free while several tenants wait with the same priority."""
    sessions: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """At a time, on all nodes together; null: as many as there is room for; 0: none."""
    priority: Literal["control", "interactive", "batch"] | None = None
    """In the waiting room; null: as the kind of session has it."""

    def priority_for(self, usual: Priority) -> Priority:
        """`usual` is that of the session's kind. Whoever comes back is never put behind."""
        if self.priority is None or usual is Priority.RESUME:
            return usual
        return _PRIORITIES[self.priority]


class Tenants:
    """Those that the operator has named, and everybody else by the defaults. Raises ValueError for a name that is none."""

    def __init__(self, named: Mapping[str, TenantSettings] | None = None) -> None:
        self._named = dict(named or {})
        for name in self._named:
            if not is_name(name):
                raise ValueError(f"tenants: expected names of 1 to 64 letters, digits, - and _, got {name!r}")

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(self._named)

    def of(self, name: str) -> TenantSettings:
        return self._named.get(name, _USUAL)


_USUAL = TenantSettings()
