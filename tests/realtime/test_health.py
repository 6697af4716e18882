import logging

import pytest

from engines import logs
from engines.messages.to_gateway import StageState, StageStatus
from fakes.edge import Edge, FakeStages, ServeEdge
from realtime.health import report


async def test_alive_and_ready(edge: Edge) -> None:
    async with edge.http.get(f"{edge.url}/healthz") as answer:
        assert (answer.status, await answer.text()) == (200, "OK")
    async with edge.http.get(f"{edge.url}/readyz") as answer:
        assert answer.status == 200
        assert (await answer.json())["status"] == "ready"


async def test_access_is_logged_under_the_requests_name_and_watching_only_for_debugging(
    edge: Edge, caplog: pytest.LogCaptureFixture
) -> None:
    class Named(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            record.name = logs.request_id.get()
            return True

    caplog.handler.addFilter(named := Named())
    with caplog.at_level(logging.DEBUG, "realtime.access"):
        for path in ("/healthz", "/readyz", "/metrics", "/v1/models"):
            async with edge.http.get(f"{edge.url}{path}") as answer:
                name = answer.headers["x-request-id"]
    caplog.handler.removeFilter(named)
    levels = {record.args[1]: record.levelname for record in caplog.records if isinstance(record.args, tuple)}
    assert levels == {"/healthz": "DEBUG", "/readyz": "DEBUG", "/metrics": "DEBUG", "/v1/models": "INFO"}
    assert caplog.records[-1].name == name


async def test_not_ready_says_what_is_loading(serve_edge: ServeEdge) -> None:
    stages = FakeStages()
    stages.thinker = StageStatus("thinker", StageState.LOADING, 8, "warming up")
    edge = await serve_edge(stages=stages)
    async with edge.http.get(f"{edge.url}/readyz") as answer:
        assert answer.status == 503
        body = await answer.json()
    assert body["status"] == "loading"
    assert body["waiting_for"] == ["thinker"]
    assert body["stages"]["thinker"]["note"] == "warming up"


async def test_what_is_wrong_with_payloads_is_told_and_keeps_nobody_out(serve_edge: ServeEdge) -> None:
    stages = FakeStages()
    stages.fault = "shared memory: 1 payload lost"
    edge = await serve_edge(stages=stages)
    async with edge.http.get(f"{edge.url}/readyz") as answer:
        assert (answer.status, (await answer.json())["faults"]) == (200, {"mind": "shared memory: 1 payload lost"})
    async with edge.http.get(f"{edge.url}/metrics") as answer:
        assert 'antiphon_worker_faulty{worker="mind"} 1.0' in (await answer.text()).splitlines()


async def test_a_draining_server_is_not_ready(edge: Edge) -> None:
    edge.context.drain.begin()
    async with edge.http.get(f"{edge.url}/readyz") as answer:
        assert (answer.status, (await answer.json())["status"]) == (503, "draining")


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], "loading"),
        ([StageState.READY, StageState.LOADING], "loading"),
        ([StageState.READY, StageState.FAILED], "failed"),
        ([StageState.READY, StageState.READY], "ready"),
    ],
)
def test_the_whole_is_as_ready_as_its_parts(states: list[StageState], expected: str) -> None:
    statuses = [StageStatus(f"stage{number}", state, 1) for number, state in enumerate(states)]
    assert report(statuses, draining=False).status == expected


async def test_metrics_tell_how_much_sound_was_made_for_nobody(edge: Edge) -> None:
    """Its client leaves in the middle of one answer, and has truncated another."""
    async with edge.connect() as client:
        await client.send("response.create")
        item_id = (await client.until("response.done"))["response"]["output"][0]["id"]
        await client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=600)
        await client.until("conversation.item.truncated")
        await client.send("response.create")
        await client.until("response.done")
    await edge.idle()
    async with edge.http.get(f"{edge.url}/metrics") as answer:
        lines = [line.partition("} ") for line in (await answer.text()).splitlines()]
    seconds = {name: float(value) for name, _, value in lines if name.startswith("antiphon_answer_sound_seconds_total")}
    made, heard = (seconds[f'antiphon_answer_sound_seconds_total{{what="{what}"'] for what in ("made", "heard"))
    assert made == pytest.approx(2 * 1.86)
    assert 0.6 <= heard < 0.6 + 1.0


async def test_metrics_tell_of_answers_stages_and_sessions(edge: Edge) -> None:
    async with edge.connect() as client:
        await client.write("Hello")
        await client.send("response.create")
        await client.until("response.done")
        async with edge.http.get(f"{edge.url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
    for expected in (
        'antiphon_requests_total{outcome="completed",source="realtime"} 1.0',
        'antiphon_ttft_seconds_count{source="realtime"} 1.0',
        'antiphon_ttfa_seconds_count{source="realtime"} 1.0',
        'antiphon_answer_seconds_count{source="realtime"} 1.0',
        'antiphon_rtf_count{source="realtime"} 1.0',
        'antiphon_stage_queue_seconds_count{stage="thinker"} 1.0',
        'antiphon_stage_run_seconds_count{stage="thinker"} 1.0',
        "antiphon_sessions_active 1.0",
        'antiphon_stage_active{stage="thinker",worker="mind"} 1.0',
        'antiphon_stage_rows_total{stage="thinker",worker="mind"} 60.0',
        'antiphon_stage_shed_total{stage="thinker",worker="mind"} 3.0',
        'antiphon_stage_produced_total{stage="thinker",units="tokens",worker="mind"} 123.0',
    ):
        assert expected in lines
