"""The GENERATION engine, as a gateway sees it over a real socket."""

import asyncio

from engines.messages.to_gateway import Aborted, Emit, ErrorKind, Failed, Taken
from engines.messages.to_worker import PUSH_WINDOW, Abort, ServiceClass
from engines.parameters import Activity
from engines.worker.spec import BatchSpec
from fakes.gateway import payload
from fakes.worker_bench import Bench


async def test_chunks_come_in_order_numbered_timed_and_end_with_an_empty_final_one(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    gateway.push("r", "a", "many", "silent", "b", final=True)
    chunks = await gateway.chunks("r")
    assert [payload(chunk).text for chunk in chunks] == ["a", "many", "many", "many", "b", ""]
    assert [chunk.seq for chunk in chunks] == [0, 1, 2, 3, 4, 5]
    assert [chunk.final for chunk in chunks] == [False] * 5 + [True]
    assert {(chunk.stage, chunk.kind, chunk.fence, chunk.epoch) for chunk in chunks} == {("echo", "echo", 7, 3)}
    assert all(chunk.timing.queue_ms >= 0 and chunk.timing.run_ms >= 0 for chunk in chunks)
    for _ in range(4):
        assert (await gateway.next(Taken)).count == 1


async def test_requests_share_steps_with_at_most_one_input_each(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.model.hold()
    for name in ("a", "b", "c"):
        gateway.submit(name)
    gateway.push("a", "a1", "a2", final=True)
    assert await bench.model.step_begins() == ["a1"]
    gateway.push("b", "b1", "b2", final=True)
    gateway.push("c", "c1", final=True)
    await gateway.heard()
    bench.model.release()
    assert await asyncio.gather(*(gateway.texts(name) for name in "a")) == [["a1", "a2", ""]]
    assert await gateway.texts("b") == ["b1", "b2", ""]
    assert await gateway.texts("c") == ["c1", ""]
    first, *later = bench.model.batches
    assert first == ["a1"]
    assert sorted(later[0]) == ["a2", "b1", "c1"]
    assert later[1:] == [["b2"]]


async def test_max_bounds_a_step_and_keys_part_it(bench: Bench) -> None:
    bench.batch = BatchSpec(max=2)
    gateway = await bench.gateway()
    bench.model.hold()
    gateway.submit("gate")
    gateway.push("gate", "gate")
    await bench.model.step_begins()
    for name, key in (("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")):
        gateway.submit(name)
        gateway.push(name, name, key=key, final=True)
    await gateway.heard()
    bench.model.release()
    for name in "abcd":
        assert await gateway.texts(name) == [name, ""]
    assert [sorted(batch) for batch in bench.model.batches[1:]] == [["a", "c"], ["b"], ["d"]]


async def test_min_is_waited_for_except_by_who_has_heard_nothing(bench: Bench) -> None:
    bench.batch = BatchSpec(max=4, min=2, max_wait_ms=3_600_000)
    gateway = await bench.gateway()
    for name in "ab":
        gateway.submit(name)
        gateway.push(name, f"{name}1")
        await gateway.chunk(name)
    gateway.push("a", "a2")
    await gateway.heard()
    gateway.push("b", "b2")
    for name in "ab":
        await gateway.chunk(name)
    assert [sorted(batch) for batch in bench.model.batches] == [["a1"], ["b1"], ["a2", "b2"]]


async def test_max_wait_ends_the_waiting_for_min(bench: Bench) -> None:
    bench.batch = BatchSpec(max=4, min=2, max_wait_ms=20)
    gateway = await bench.gateway()
    gateway.submit("a")
    gateway.push("a", "express")
    await gateway.chunk("a")
    gateway.push("a", "waits")
    assert (await gateway.chunk("a")).timing.queue_ms >= 20


async def test_what_is_ahead_of_its_listener_waits_for_who_has_heard_nothing(bench: Bench) -> None:
    bench.batch = BatchSpec(max=1)
    gateway = await bench.gateway()
    gateway.submit("talkative")
    gateway.push("talkative", "ahead")
    await gateway.chunk("talkative")
    bench.model.hold()
    gateway.submit("gate")
    gateway.push("gate", "gate")
    await bench.model.step_begins()
    await bench.model.step_begins()
    gateway.push("talkative", "more", final=True)
    gateway.submit("new")
    gateway.push("new", "first", "second", final=True)
    await gateway.heard()
    bench.model.release()
    await gateway.texts("talkative")
    assert bench.model.batches[2:] == [["first"], ["second"], ["more"]]


async def test_control_goes_before_batch(bench: Bench) -> None:
    bench.batch = BatchSpec(max=1)
    gateway = await bench.gateway()
    bench.model.hold()
    gateway.submit("gate")
    gateway.push("gate", "gate")
    await bench.model.step_begins()
    for service_class in (ServiceClass.BATCH, ServiceClass.INTERACTIVE, ServiceClass.CONTROL):
        gateway.submit(service_class, service_class=service_class)
        gateway.push(service_class, service_class, final=True)
    await gateway.heard()
    bench.model.release()
    await gateway.texts("batch")
    assert bench.model.batches[1:] == [["control"], ["interactive"], ["batch"]]


async def test_a_request_without_credit_waits_and_no_other_does(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("slow", window=1)
    gateway.submit("other")
    gateway.push("slow", "s1", "s2", final=True)
    gateway.push("other", "o1", "o2", final=True)
    assert await gateway.texts("other") == ["o1", "o2", ""]
    assert payload(await gateway.chunk("slow")).text == "s1"
    assert "s2" not in [text for batch in bench.model.batches for text in batch]
    gateway.grant("slow")
    assert payload(await gateway.chunk("slow")).text == "s2"
    gateway.grant("slow")
    assert (await gateway.chunk("slow")).final


async def test_what_a_step_makes_beyond_the_credit_is_held_back(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", window=2)
    gateway.push("r", "many", "b", final=True)
    await gateway.chunk("r")
    await gateway.chunk("r")
    await gateway.heard()
    assert not any(isinstance(message, Emit) for message in gateway.unread)
    assert bench.model.batches == [["many"]]
    gateway.grant("r", 3)
    assert await gateway.texts("r") == ["many", "b", ""]


async def test_a_raising_row_fails_alone(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.model.hold()
    gateway.submit("gate")
    gateway.push("gate", "gate")
    await bench.model.step_begins()
    for name in ("good", "raise", "invalid"):
        gateway.submit(name)
        gateway.push(name, name, final=True)
    await gateway.heard()
    bench.model.release()
    assert await gateway.texts("good") == ["good", ""]
    raised = await gateway.next(Failed, lambda failed: failed.request_id == "raise")
    assert (raised.kind, raised.message) == (ErrorKind.ENGINE, "RuntimeError: scripted")
    refused = await gateway.next(Failed, lambda failed: failed.request_id == "invalid")
    assert refused.kind is ErrorKind.INVALID
    assert "got 'invalid'" in refused.message
    assert (bench.model.opened, bench.model.closed) == (4, 3)


async def test_what_the_model_refuses_at_open_or_by_its_key_is_invalid(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("open", parameters=Activity(with_audio=True))
    assert (await gateway.next(Failed)).message == "with_audio: expected false, got true"
    gateway.submit("key")
    gateway.push("key", "keyless")
    assert (await gateway.next(Failed)).kind is ErrorKind.INVALID
    assert bench.model.opened == bench.model.closed == 1


async def test_the_model_is_only_called_in_its_own_thread(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    gateway.push("r", "a", final=True)
    await gateway.texts("r")
    assert bench.model.threads == {"echo_0"}


async def test_abort_during_its_own_step_drops_the_result_and_is_acknowledged_when_closed(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.model.hold()
    gateway.submit("r")
    gateway.push("r", "a", "b")
    await bench.model.step_begins()
    gateway.send(Abort("r"), Abort("r"))
    await gateway.heard()
    assert not any(isinstance(message, Aborted) for message in gateway.unread)
    bench.model.release()
    await gateway.next(Aborted)
    assert bench.model.closed == 1
    assert bench.model.batches == [["a"]]
    assert not any(isinstance(message, Emit) for message in gateway.unread)


async def test_abort_of_another_request_is_answered_while_a_step_hangs_and_frees_its_slot(bench: Bench) -> None:
    bench.slots = 2
    gateway = await bench.gateway()
    gateway.submit("other")
    gateway.push("other", "o")
    await gateway.chunk("other")
    await bench.model.step_begins()
    bench.model.hold()
    gateway.submit("hangs")
    gateway.push("hangs", "h")
    await bench.model.step_begins()
    gateway.send(Abort("other"))
    assert (await gateway.next(Aborted)).request_id == "other"
    gateway.submit("next")
    gateway.push("next", "n", final=True)
    bench.model.release()
    assert await gateway.texts("next") == ["n", ""]
    assert (bench.model.opened, bench.model.closed) == (3, 2)


async def test_abort_of_an_unknown_request_is_acknowledged(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.send(Abort("never"), Abort("never"))
    assert (await gateway.next(Aborted)).request_id == "never"


async def test_slots_are_granted_by_the_worker_and_free_with_the_final_chunk(bench: Bench) -> None:
    bench.slots = 1
    gateway = await bench.gateway()
    gateway.submit("a")
    gateway.submit("b")
    refused = await gateway.next(Failed)
    assert (refused.request_id, refused.kind) == ("b", ErrorKind.OVERLOADED)
    gateway.push("a", final=True)
    assert (await gateway.chunk("a")).final
    gateway.submit("c")
    gateway.push("c", "c", final=True)
    assert await gateway.texts("c") == ["c", ""]


async def test_pushing_beyond_the_window_fails_the_request(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.model.hold()
    gateway.submit("r")
    gateway.push("r", "0")
    await bench.model.step_begins()
    gateway.push("r", *(str(number) for number in range(PUSH_WINDOW + 1)))
    bench.model.release()
    assert (await gateway.next(Failed)).kind is ErrorKind.INVALID


async def test_input_after_the_final_one_fails_the_request(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", window=0)
    gateway.push("r", "a", final=True)
    gateway.push("r", "b")
    assert "after the final one" in (await gateway.next(Failed)).message


async def test_intake_bridge_joins_what_the_caller_pushes(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "joined")
    gateway.push("r", "one ", "two", stage="joined", final=True)
    assert await gateway.texts("r") == ["one two", ""]


async def test_counters(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    gateway.push("r", "many", "a", final=True)
    await gateway.texts("r")
    report = await gateway.heard()
    echo = next(stage for stage in report.stages if stage.stage == "echo")
    assert (echo.steps, echo.items, echo.produced, echo.emitted, echo.units) == (2, 2, 4, 5, "texts")
    assert (echo.active, echo.queued, echo.slots) == (0, 0, 8)
    assert set(echo.step_ms_by_batch) == {1}
    assert report.rss_bytes > 1 << 20
