"""The AR engine on a scripted language model, as a gateway sees it over a real socket."""

import asyncio

import pytest

from engines.messages.to_gateway import Aborted, Emit, ErrorKind, Failed, Report
from engines.messages.to_worker import Abort, Probe
from engines.parameters import Generation, Message
from fakes.gateway import FakeGateway, payload
from fakes.worker_bench import Bench

SYSTEM = Message("system", "be brief")


def ask(gateway: FakeGateway, request_id: str, *messages: Message, window: int = 64) -> None:
    gateway.submit(request_id, "writer", parameters=Generation(messages), window=window)
    gateway.push(request_id, stage="writer", final=True)


async def produced(gateway: FakeGateway) -> int:
    """Tokens so far. The answer to a Probe is also proof that everything sent before has been handled."""
    gateway.send(Probe())
    report = await gateway.next(Report)
    return next(stage for stage in report.stages if stage.stage == "writer").produced


async def test_deltas_stream_with_the_tokens_so_far_and_the_final_chunk_says_how_it_ended(bench: Bench) -> None:
    gateway = await bench.gateway()
    ask(gateway, "r", SYSTEM, Message("user", "one two three"))
    chunks = await gateway.chunks("r")
    assert [payload(chunk).text for chunk in chunks] == ["one", "two", "three"]
    assert [chunk.kind for chunk in chunks] == ["text"] * 3
    assert payload(chunks[0]).attributes == {"prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 1}
    assert payload(chunks[-1]).attributes == {
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "completion_tokens": 3,
        "finish_reason": "stop",
    }


async def test_the_transcript_becomes_the_last_user_message(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "writer", upstreams=("echo",), parameters=Generation((SYSTEM,)))
    gateway.push("r", "where is", " the sea", stage="writer", source="echo", final=True)
    assert await gateway.texts("r") == ["where", "is", "the", "sea"]
    assert bench.text_model.conversations == [[SYSTEM, Message("user", "where is the sea")]]


async def test_silence_upstream_gives_an_empty_answer_without_asking_the_model(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "writer", upstreams=("echo",), parameters=Generation((SYSTEM,)))
    gateway.push("r", stage="writer", source="echo", final=True)
    (only,) = await gateway.chunks("r")
    assert payload(only).attributes["completion_tokens"] == 0
    assert bench.text_model.conversations == []


@pytest.mark.parametrize(
    ("messages", "kind", "told"),
    [
        ((), ErrorKind.INVALID, "messages: expected at least one message, got none"),
        ((Message("user", "word " * 101),), ErrorKind.INVALID, "messages: expected fewer than 100 tokens, got 101"),
        ((Message("user", "raise"),), ErrorKind.ENGINE, "RuntimeError: scripted"),
    ],
)
async def test_failures_end_one_request(bench: Bench, messages: tuple[Message, ...], kind: ErrorKind, told: str) -> None:
    gateway = await bench.gateway()
    ask(gateway, "bad", *messages)
    failed = await gateway.next(Failed)
    assert (failed.request_id, failed.kind, failed.message) == ("bad", kind, told)
    ask(gateway, "good", Message("user", "fine"))
    assert await gateway.texts("good") == ["fine"]


async def test_without_credit_the_model_is_not_read_on(bench: Bench) -> None:
    gateway = await bench.gateway()
    ask(gateway, "slow", Message("user", "a b c d e"), window=2)
    ask(gateway, "other", Message("user", "x y z"))
    assert await gateway.texts("other") == ["x", "y", "z"]
    for _ in range(2):
        await gateway.chunk("slow")
    assert await produced(gateway) == 5
    assert not any(isinstance(message, Emit) for message in gateway.unread)
    gateway.grant("slow", 3, "writer")
    assert await gateway.texts("slow") == ["c", "d", "e"]


async def test_abort_stops_the_model(bench: Bench) -> None:
    gateway = await bench.gateway()
    ask(gateway, "r", Message("user", "a wait b"))
    await gateway.chunk("r")
    gateway.send(Abort("r"))
    await gateway.next(Aborted)
    assert bench.text_model.aborted == 1
    assert await produced(gateway) == bench.text_model.produced == 1


async def test_abort_before_the_input_has_ended_frees_the_slot(bench: Bench) -> None:
    bench.slots = 1
    gateway = await bench.gateway()
    gateway.submit("r", "writer", parameters=Generation((SYSTEM,)))
    gateway.send(Abort("r"))
    await gateway.next(Aborted)
    ask(gateway, "next", Message("user", "fine"))
    assert await gateway.texts("next") == ["fine"]


async def test_a_dead_model_fails_every_request_and_ends_the_worker(bench: Bench) -> None:
    gateway = await bench.gateway()
    ask(gateway, "waits", Message("user", "a wait"))
    await gateway.chunk("waits")
    ask(gateway, "kills", Message("user", "die"))
    told = {(await gateway.next(Failed)).request_id for _ in range(2)}
    assert told == {"waits", "kills"}
    assert await bench.model_died()


async def test_asked_to_weigh_an_ending_it_writes_nothing(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "writer", parameters=Generation((SYSTEM, Message("user", "one two")), weigh_ending=True))
    gateway.push("r", stage="writer", final=True)
    (chunk,) = await gateway.chunks("r")
    assert payload(chunk).text == ""
    assert payload(chunk).attributes == {"ending": -0.5}


async def test_a_model_that_says_nothing_any_more_counts_as_dead(bench: Bench) -> None:
    bench.hang_limit_s = 0.02
    gateway = await bench.gateway()
    ask(gateway, "stuck", Message("user", "a wait"))
    ask(gateway, "stuck too", Message("user", "wait"))
    told = {(failed.request_id, failed.kind, failed.message) for failed in [await gateway.next(Failed) for _ in range(2)]}
    sentence = "the language model hangs: nothing has come from it for 0.02 s"
    assert told == {("stuck", ErrorKind.ENGINE, sentence), ("stuck too", ErrorKind.ENGINE, sentence)}
    assert await bench.model_died()


async def test_a_model_that_nobody_waits_for_does_not_hang(bench: Bench) -> None:
    """One request was aborted, one has no credit, one has ended: none of them waits for the model."""
    bench.hang_limit_s = 0.02
    gateway = await bench.gateway()
    ask(gateway, "aborted", Message("user", "wait"))
    ask(gateway, "blocked", Message("user", "a b"), window=1)
    gateway.send(Abort("aborted"))
    await gateway.next(Aborted)
    await gateway.chunk("blocked")
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(3 * bench.hang_limit_s, passed.set)
    await passed.wait()
    gateway.grant("blocked", 1, "writer")
    assert await gateway.texts("blocked") == ["b"]
