"""Who waits at a running server, and all that share its store, and what is taken of what they have."""

import argparse
from collections.abc import Iterator

import msgspec

from realtime.admin.records import QueueShown, SeatsShown
from realtime.commands.server_options import add_server_options, client, number, show, table


class _Both(msgspec.Struct, frozen=True):
    queue: QueueShown
    seats: SeatsShown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Raises AdminFailed."""
    server = client(arguments)
    both = _Both(server.ask("GET", "/queue", QueueShown), server.ask("GET", "/seats", SeatsShown))
    show(arguments, both, _lines(both))
    return 0


def _lines(both: _Both) -> Iterator[str]:
    queue, seats = both.queue, both.seats
    off = "" if queue.estimate_error_s is None else f"; first estimates were off by {queue.estimate_error_s:.1f} s"
    yield f"{queue.waiting} wait, of {queue.longest_queue} that may, {queue.longest_wait_s:g} s at most{off}"
    yield f"{seats.active} have a seat; {seats.lent} of them have no client now, and give it to a newcomer"
    for kind, known in seats.calibrated.items():
        yield f"calibrated: {known.seats} of kind {kind}"
    rows = [(name, number(each.used), number(each.capacity)) for name, each in seats.resources.items()]
    yield from table(("RESOURCE", "USED", "CAPACITY"), rows, "no node brings anything")
