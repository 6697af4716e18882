"""The DIFFUSION engine, as a gateway sees it over a real socket. Calls wait for the test, and a scheduler without policy."""

import time

from engines.connectors.contents import Inline
from engines.messages.to_gateway import Aborted, Emit, ErrorKind, Failed, Taken
from engines.messages.to_worker import Abort
from engines.models.diffusion import JOB, PREVIEW, REFUSED, STEP, STEPS, UPDATE
from engines.parameters import Denoising
from fakes.gateway import payload
from fakes.ordering import counted, ends, order, push, push_with, submit, told
from fakes.worker_bench import Bench

HUNG = "the model hangs: nothing has come from it for 0.05 s"


async def test_a_job_goes_its_steps_and_its_chunks_say_how_far_it_is(bench: Bench) -> None:
    gateway = await bench.gateway()
    submit(gateway, "r")
    push(gateway, "r", steps=3, previews=True)
    push(gateway, "r", "again", steps=1, final=True)
    chunks = await gateway.chunks("r")
    attributes = [payload(chunk).attributes for chunk in chunks]
    assert attributes[0] == {JOB: 0, STEP: 1, STEPS: 3, PREVIEW: 0}
    assert [(said.get(JOB), said.get(STEP)) for said in attributes] == [(0, 1), (0, 2), (0, 3), (1, 1), (None, None)]
    assert [payload(chunk).text for chunk in chunks] == ["r", "r", "r", "again", ""]
    assert all(chunk.timing.queue_ms >= 0 and chunk.timing.run_ms >= 0 for chunk in chunks)
    assert [(await gateway.next(Taken)).count for _ in range(2)] == [1, 1]
    assert bench.stepper.threads == {"steps_0"}


async def test_jobs_at_different_steps_share_calls_and_join_at_the_next(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "a", steps=3)
    assert await bench.stepper.call_begins() == ["a"]
    order(gateway, "b", "c", steps=2)
    await gateway.heard()
    bench.stepper.release()
    for name in "abc":
        await ends(gateway, name)
    assert [sorted(call) for call in bench.stepper.calls] == [["a"], ["a", "b", "c"], ["a", "b", "c"]]


async def test_a_scheduler_learns_what_a_call_takes_with_the_way_to_the_thread_and_back(bench: Bench) -> None:
    bench.stepper.hold()
    gateway = await bench.gateway()
    order(gateway, "r", steps=1)
    await bench.stepper.call_begins()
    bench.ahead_s += 5
    bench.stepper.release()
    await ends(gateway, "r")
    assert 5 <= bench.first_come.ran_s[0] < 10


async def test_a_scheduler_hears_whether_a_job_prepares_itself(bench: Bench) -> None:
    bench.stepper.hold()
    gateway = await bench.gateway()
    order(gateway, "r", steps=3, preparations=2)
    heard: list[bool] = []
    for _ in range(3):
        await bench.stepper.call_begins()
        heard.append(bench.first_come.members[0].prepares)
        bench.stepper.let()
    assert heard == [True, True, False]
    await ends(gateway, "r")


async def test_rows_and_keys_part_calls(bench: Bench) -> None:
    bench.first_come.most_rows = 4
    gateway = await bench.gateway()
    bench.first_come.held = time.monotonic() + 3600
    for name, rows, key in (("a", 2, "x"), ("b", 1, "y"), ("c", 2, "x"), ("d", 1, "x")):
        order(gateway, name, rows=rows, key=key, steps=1)
    await gateway.heard()
    bench.first_come.held = 0.0
    order(gateway, "e", key="z", steps=1)
    for name in "abcde":
        await ends(gateway, name)
    assert bench.stepper.calls == [["a", "c"], ["b"], ["d"], ["e"]]
    report = await counted(gateway)
    assert (report.steps, report.rows, report.items, report.produced, report.shed) == (4, 7, 5, 7, 0)
    assert set(report.step_ms_by_batch) == {4, 1}


async def test_the_scheduler_is_asked_again_when_it_says(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.first_come.held = time.monotonic() + 0.03
    order(gateway, "a", steps=1)
    assert (await ends(gateway, "a")).timing.queue_ms >= 20


async def test_a_request_without_credit_stops_and_no_other_does(bench: Bench) -> None:
    gateway = await bench.gateway()
    submit(gateway, "slow", window=1)
    push(gateway, "slow", steps=3, previews=True, final=True)
    await gateway.chunk("slow")
    order(gateway, "other", steps=5)
    await ends(gateway, "other")
    assert sum("slow" in call for call in bench.stepper.calls) == 1
    assert bench.first_come.members == []
    gateway.grant("slow", 3, stage="steps")
    assert [payload(chunk).attributes.get(STEP) for chunk in await gateway.chunks("slow")] == [2, 3, None]


async def test_who_has_no_credit_at_first_begins_when_it_has(bench: Bench) -> None:
    gateway = await bench.gateway()
    submit(gateway, "r", window=0)
    push(gateway, "r", steps=1, final=True)
    await gateway.heard()
    assert bench.stepper.calls == []
    gateway.grant("r", 2, stage="steps")
    await ends(gateway, "r")


async def test_an_abort_takes_effect_at_the_next_call(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "r", steps=100)
    await bench.stepper.call_begins()
    gateway.send(Abort("r"), Abort("r"))
    await gateway.heard()
    assert not any(isinstance(message, Aborted) for message in gateway.unread)
    bench.stepper.release()
    await gateway.next(Aborted)
    assert (bench.stepper.calls, bench.stepper.abandoned, bench.stepper.closed) == ([["r"]], ["r"], 1)
    assert bench.first_come.members == []
    assert not any(isinstance(message, Emit) for message in gateway.unread)


async def test_who_is_not_in_the_call_leaves_at_once(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "waits", steps=100, key="x")
    await bench.stepper.call_begins()
    order(gateway, "runs", steps=1, key="y")
    await gateway.heard()
    bench.stepper.let()
    assert await bench.stepper.call_begins() == ["waits"]
    gateway.send(Abort("runs"))
    assert (await gateway.next(Aborted)).request_id == "runs"
    bench.stepper.release()
    gateway.send(Abort("waits"))
    await gateway.next(Aborted)
    await gateway.idle()
    assert sorted(bench.stepper.abandoned) == ["runs", "waits"]
    assert bench.stepper.opened == bench.stepper.closed == 2


async def test_what_ends_in_the_call_that_it_is_aborted_in_is_not_abandoned(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "r", steps=1)
    await bench.stepper.call_begins()
    gateway.send(Abort("r"))
    await gateway.heard()
    bench.stepper.release()
    await gateway.next(Aborted)
    assert (bench.stepper.abandoned, bench.stepper.closed) == ([], 1)


async def test_a_job_that_fails_costs_no_other(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "gate", steps=2)
    await bench.stepper.call_begins()
    order(gateway, "good", "raise", "invalid", "refuse", steps=2)
    await gateway.heard()
    bench.stepper.release()
    alone = (await ends(gateway, "good")).content
    failures = {failed.request_id: failed for failed in [await gateway.next(Failed) for _ in range(3)]}
    assert failures["raise"].kind is ErrorKind.ENGINE
    assert failures["raise"].message == "RuntimeError: told to"
    assert {failures["invalid"].kind, failures["refuse"].kind} == {ErrorKind.INVALID}
    await ends(gateway, "gate")
    await gateway.idle()
    assert sorted(bench.stepper.abandoned) == ["invalid", "raise"]
    assert bench.first_come.members == []
    order(gateway, "good2", steps=2)
    assert isinstance(alone, Inline)
    assert payload(await ends(gateway, "good2")).arrays["sums"] == alone.payload.arrays["sums"]


async def test_what_the_model_refuses_at_open_is_invalid(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "steps", parameters=Denoising(sampler="edm"))
    assert (await gateway.next(Failed)).message == "sampler: expected 'flow', got 'edm'"


async def test_updates_are_taken_at_once_and_answered(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    submit(gateway, "r")
    push(gateway, "r", "old", steps=3)
    await bench.stepper.call_begins()
    push_with(gateway, "r", {UPDATE: True}, "new")
    push_with(gateway, "r", {UPDATE: True}, "refuse")
    push(gateway, "r", "next", steps=1)
    await gateway.heard()
    bench.stepper.release()
    assert await told(gateway, "r") == {UPDATE: True, JOB: 0, STEP: 1, STEPS: 3}
    refused = await told(gateway, "r")
    assert refused == {REFUSED: "text: expected anything else, got 'refuse'", JOB: 0, STEP: 1, STEPS: 3}
    assert [payload(await gateway.chunk("r")).text for _ in range(2)] == ["new", "next"]
    assert bench.stepper.calls == [["old"], ["new"], ["new"], ["next"]]
    push_with(gateway, "r", {UPDATE: True}, "late", final=True)
    assert await told(gateway, "r") == {REFUSED: "update: expected a job under way, got none"}
    assert (await gateway.chunk("r")).final


async def test_long_jobs_say_how_far_they_are_four_times_a_second(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "r", steps=6)
    for ahead_s in (0.9, 1.1, 1.2, 1.4, 1.5):
        await bench.stepper.call_begins()
        bench.ahead_s = ahead_s
        bench.stepper.let()
    await bench.stepper.call_begins()
    bench.stepper.release()
    attributes = [payload(chunk).attributes for chunk in await gateway.chunks("r")]
    assert attributes == [{JOB: 0, STEP: step, STEPS: 6} for step in (2, 4, 6)] + [{}]


async def test_times_of_a_jobs_chunks_add_up(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "r", steps=3, previews=True)
    for ahead_s in (1.0, 1.0, 3.0):
        await bench.stepper.call_begins()
        bench.ahead_s = ahead_s
        bench.stepper.let()
    timings = [chunk.timing for chunk in (await gateway.chunks("r"))[:3]]
    seconds = [round((timing.queue_ms + timing.run_ms) / 1000) for timing in timings]
    assert seconds == [1, 0, 2]


async def test_a_call_that_hangs_is_told_to_everybody_and_the_worker_ends(bench: Bench) -> None:
    bench.hang_limit_s = 0.05
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "stuck")
    await bench.stepper.call_begins()
    submit(gateway, "idle")
    failures = [await gateway.next(Failed) for _ in range(2)]
    assert {(failed.request_id, failed.kind, failed.message) for failed in failures} == {
        ("stuck", ErrorKind.ENGINE, HUNG),
        ("idle", ErrorKind.ENGINE, HUNG),
    }
    assert await bench.model_died()


async def test_slots_free_with_the_final_chunk(bench: Bench) -> None:
    bench.slots = 1
    gateway = await bench.gateway()
    order(gateway, "a", steps=2)
    await ends(gateway, "a")
    order(gateway, "b", steps=1)
    await ends(gateway, "b")
    assert bench.stepper.opened == bench.stepper.closed == 2


async def test_a_request_without_input_ends(bench: Bench) -> None:
    gateway = await bench.gateway()
    submit(gateway, "r")
    gateway.push("r", stage="steps", final=True)
    assert (await gateway.chunk("r")).final


async def test_what_waits_is_counted(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "runs")
    await bench.stepper.call_begins()
    submit(gateway, "waits")
    push(gateway, "waits")
    push(gateway, "waits")
    report = await counted(gateway)
    assert (report.active, report.queued) == (2, 3)
