"""A stage with several upstreams, as a gateway sees it."""

import pytest

from engines.messages.to_gateway import Aborted, ErrorKind, Failed, Taken
from engines.messages.to_worker import Abort
from fakes.gateway import FakeGateway
from fakes.worker_bench import Bench

BOTH = ("echo", "joined")


async def test_what_two_stages_send_is_bridged_by_edge_and_taken_by_source(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "mixed", upstreams=BOTH)
    gateway.push("r", "1", stage="mixed", source="echo")
    gateway.push("r", "2", stage="mixed", source="joined", final=True)
    gateway.push("r", stage="mixed", source="echo", final=True)
    assert await gateway.texts("r") == ["<1>", "<2>", ".", ".", ""]
    taken = [message.source for message in gateway.unread if isinstance(message, Taken)]
    assert taken == ["echo", "joined", "echo"]


async def test_a_join_stands_between_bridges_and_engine(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "paired", upstreams=BOTH)
    gateway.push("r", "1", stage="paired", source="echo", final=True)
    gateway.push("r", "2", stage="paired", source="joined", final=True)
    assert await gateway.texts("r") == ["<1><2>", "..", ""]


async def test_a_request_may_leave_one_of_the_upstreams_out(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "paired", upstreams=("joined",))
    gateway.push("r", "2", stage="paired", source="joined", final=True)
    assert await gateway.texts("r") == ["<2>", ".", ""]


@pytest.mark.parametrize(
    ("stage", "source", "text", "kind", "told"),
    [
        ("mixed", "echo", "raise", ErrorKind.ENGINE, "RuntimeError: scripted"),
        ("paired", "joined", "unmatched", ErrorKind.ENGINE, "RuntimeError: unmatched"),
        (
            "mixed",
            "writer",
            "x",
            ErrorKind.INVALID,
            "source of input for stage 'mixed': expected 'echo', 'joined', got 'writer'",
        ),
    ],
)
async def test_what_goes_wrong_on_an_edge_ends_that_request_only(
    bench: Bench, stage: str, source: str, text: str, kind: ErrorKind, told: str
) -> None:
    gateway = await bench.gateway()
    for name in ("bad", "good"):
        gateway.submit(name, stage, upstreams=BOTH)
    gateway.push("good", "1", stage=stage, source="echo")
    gateway.push("bad", text, stage=stage, source=source)
    failed = await gateway.next(Failed)
    assert (failed.request_id, failed.stage, failed.kind, failed.message) == ("bad", stage, kind, told)
    await finish(gateway, "good", stage)


async def finish(gateway: FakeGateway, name: str, stage: str) -> None:
    for source in BOTH:
        gateway.push(name, stage=stage, source=source, final=True)
    assert (await gateway.texts(name))[-1] == ""


async def test_upstreams_named_twice_are_refused(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "mixed", upstreams=("echo", "echo"))
    failed = await gateway.next(Failed)
    assert (failed.kind, failed.message) == (ErrorKind.INVALID, "upstreams: expected each stage once, got echo, echo")


async def test_a_producer_that_fails_leaves_its_consumer_waiting_until_the_gateway_aborts_it(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    gateway.submit("r", "mixed", upstreams=BOTH)
    gateway.push("r", "half", stage="mixed", source="echo")
    gateway.push("r", "raise")
    assert (await gateway.next(Failed)).stage == "echo"
    assert (await gateway.chunk("r", "mixed")).seq == 0
    gateway.send(Abort("r"))
    await gateway.next(Aborted)
    await gateway.idle()
