"""Every key of the store in Redis. Admission has one slot, the jobs have one, each session has one of its own."""

from typing import Final

ADMISSION: Final = "{admission}"
"""In which all of these are; `{…}` stands for what is appended."""

ADMISSION_KEYS: Final = {
    "STATE": f"{ADMISSION}:state",  # hash: incarnation, settled_us, run_id, number, arrivals, wait_error_us, virtual_<priority>
    "ENDS": f"{ADMISSION}:ends",  # sorted set: what happens by itself, by its time in µs: see seating.lua
    "NODES": f"{ADMISSION}:nodes",  # hash: node → what it has told
    "BROUGHT": f"{ADMISSION}:brought",  # hash: node → names of the resources that it brings
    "CAPACITY": f"{ADMISSION}:capacity",  # hash: resource → thousandths
    "RESERVE": f"{ADMISSION}:reserve",  # hash: resource → thousandths
    "USED": f"{ADMISSION}:used",  # hash: resource → thousandths
    "TELLERS": f"{ADMISSION}:tellers:",  # {resource}, set: living nodes that bring it
    "TICKETS": f"{ADMISSION}:tickets",  # hash: session → ticket
    "TENANTS": f"{ADMISSION}:tenants",  # hash: tenant → tickets
    "TICKETS_OF": f"{ADMISSION}:tickets_of:",  # {node}, sorted set: its sessions, by their standing
    "LENT": f"{ADMISSION}:lent",  # sorted set: sessions whose tickets are lent, by since when
    "LENT_OF": f"{ADMISSION}:lent_of:",  # {resource}, sorted set: those of them that have some of it
    "PLACES": f"{ADMISSION}:places",  # hash: session → place in the waiting room
    "WAITING": f"{ADMISSION}:waiting:",  # {priority}, sorted set: places, by virtual time
    "FINISH": f"{ADMISSION}:finish:",  # {priority}, sorted set: tenants, by the end of their last place in virtual time
    "GIVEN": f"{ADMISSION}:given",  # sorted set: session:node whose ticket ended by itself, by when
    "ORPHANS": f"{ADMISSION}:orphans",  # sorted set: their sessions, by when they may be taken
    "DEPARTED": f"{ADMISSION}:departed",  # hash: kind → when the last one left, in µs
    "INTERVAL": f"{ADMISSION}:interval",  # hash: kind → between two who leave, in µs
    "BILLS": f"{ADMISSION}:bills",  # hash: tenant NUL what → thousandths
    "BILLED": f"{ADMISSION}:billed:",  # {session}, hash: what → thousandths; expires
    "NEWS": f"{ADMISSION}:news:",  # {node}, stream: field "news"; expires
}

SESSION_PARTS: Final = ("head", "journal", "inputs", "snapshot", "results", "result_order")
"""Of each session: a hash, two lists, a string, a hash, a list. In this order the Functions get them."""

LISTING: Final = tuple(f"{{sessions}}:{part}" for part in ("ids", "of_tenants", "made", "ends"))
"""Of all sessions: by id and by tenant (sorted sets), when each was made and for whom (hash), when it ends (sorted set)."""

JOBS: Final = "{jobs}"
JOB_KEYS: Final = {
    "JOB": f"{JOBS}:job:",  # {id}, hash
    "JOBS_OF_TENANTS": f"{JOBS}:of_tenants",  # sorted set: tenant NUL id, in their order
    "JOBS_DUE": f"{JOBS}:due",  # sorted set: ids, by when something becomes of each by itself, in µs
}
"""Work that goes on without whoever asked for it; all in one slot."""


def session_keys(session_id: str) -> tuple[str, ...]:
    return tuple(f"{{{session_id}}}:{part}" for part in SESSION_PARTS)


def shelf_key(shelf: str) -> str:
    """Hash: name → value."""
    return f"{{shelves}}:{shelf}"
