"""Which connector a stage is told."""

import os
import subprocess
import sys

import pytest

from engines.graph.placement import connector
from engines.site import NOWHERE, Site, this_host

HERE, THERE, UNREACHABLE = Site("here", "tcp"), Site("there", "mooncake"), Site("behind a wall")


@pytest.mark.parametrize(
    ("producer", "readers", "expected"),
    [
        (HERE, [HERE, HERE], "shared_memory"),
        (UNREACHABLE, [UNREACHABLE], "shared_memory"),
        (HERE, [HERE, THERE], "tcp"),
        (HERE, [UNREACHABLE], "tcp"),
        (THERE, [HERE], "mooncake"),
        (UNREACHABLE, [HERE], "inline"),
        (NOWHERE, [NOWHERE], "inline"),
        (UNREACHABLE, [UNREACHABLE, HERE], "inline"),
    ],
)
def test_shared_memory_on_one_host_and_what_the_producer_offers_between_two(
    producer: Site, readers: list[Site], expected: str
) -> None:
    assert connector(producer, readers) == expected


def test_processes_of_one_user_on_one_machine_are_one_host() -> None:
    script = "from engines.site import this_host; print(this_host())"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert told == this_host()
    assert told.endswith(f"/{os.getuid()}")
