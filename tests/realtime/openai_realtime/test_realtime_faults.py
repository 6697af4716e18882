"""What goes wrong on a realtime connection: bad input, full servers, broken engines, silent peers."""

import asyncio
import base64
import json
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.messages.to_gateway import ErrorKind, StageState, StageStatus
from fakes.edge import Edge, FakeStages, ServeEdge
from fakes.graph import silence, tone
from realtime.openai_realtime.client_events import KNOWN_TYPES
from realtime.settings import ServerSettings
from sessions.admission.settings import AdmissionSettings
from sessions.retention.settings import SessionLimits
from strict_client import StrictClient, alive, strict_event


@pytest.mark.parametrize(
    ("event", "field", "named"),
    [
        ({"type": "response.start"}, "type", KNOWN_TYPES),
        ({"type": "output_audio_buffer.clear"}, "type", ("output_audio_buffer.clear",)),
        ({"type": "session.update"}, "session", ()),
        ({"type": "session.update", "session": {"voice": "joe"}}, "session.voice", ()),
        ({"type": "session.update", "session": {"audio": {"output": {"voice": "x"}}}}, "session.audio.output.voice", ("joe",)),
        ({"type": "session.update", "session": {"tools": [{"type": "function"}]}}, "session.tools", ("not served yet",)),
        ({"type": "input_audio_buffer.append", "audio": "@@@"}, "audio", ("base64",)),
        ({"type": "input_audio_buffer.append", "audio": 7}, "audio", ("str", "int")),
        ({"type": "conversation.item.delete", "item_id": "nobody"}, "item_id", ("nobody",)),
        ({"type": "conversation.item.retrieve", "item_id": "nobody"}, "item_id", ("nobody",)),
        ({"type": "response.create", "response": {"conversation": "x"}}, "response.conversation", ()),
    ],
)
async def test_a_bad_event_is_answered_by_name_and_the_session_lives(
    edge: Edge, event: dict[str, Any], field: str, named: tuple[str, ...]
) -> None:
    async with edge.connect() as client:
        await client.send_raw(json.dumps(event | {"event_id": "mine"}))
        error = await client.error()
        assert error["event_id"] == "mine"
        assert error["param"] == field
        assert all(name in error["message"] for name in named)
        await alive(client)


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[]", "null", '{"type": "x"'])
async def test_broken_json_is_answered(edge: Edge, text: str) -> None:
    async with edge.connect() as client:
        await client.send_raw(text)
        assert (await client.error())["type"] == "invalid_request_error"
        await alive(client)


@pytest.mark.parametrize("depth", [*range(900, 1_010, 3), 1_500])
@pytest.mark.parametrize("field", ["noise_reduction", "tracing", "turn_detection", "unknown"])
async def test_deep_nesting_leaves_the_session_alive(edge: Edge, field: str, depth: int) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    session = f'{{"{field}": {nested}}}' if field == "tracing" else f'{{"audio": {{"input": {{"{field}": {nested}}}}}}}'
    async with edge.connect() as client:
        await client.send_raw(f'{{"type": "session.update", "session": {session}}}')
        answer = await client.socket.receive_str()
        assert '"internal_error"' not in answer
        await alive(client)


async def test_binary_messages_and_broken_text_are_answered(edge: Edge) -> None:
    async with edge.connect() as client:
        await client.socket.send_bytes(b"\x00\x01")
        assert "binary" in (await client.error())["message"]
        await client.socket.send_frame(b"\xff\xfe{}", aiohttp.WSMsgType.TEXT)
        assert (await client.error())["code"] == "invalid_json"
        await alive(client)


@pytest.mark.parametrize(("duration_ms", "taken"), [(0, False), (99, False), (100, True)])
async def test_a_commit_needs_a_tenth_of_a_second(edge: Edge, duration_ms: int, taken: bool) -> None:
    async with edge.connect() as client:
        await client.send("session.update", session={"audio": {"input": {"turn_detection": None}}})
        if duration_ms:
            await client.append(silence(duration_ms))
        await client.send("input_audio_buffer.commit")
        await client.until("input_audio_buffer.committed" if taken else "error")
        await alive(client)


async def test_odd_bytes_are_carried_over(edge: Edge) -> None:
    async with edge.connect() as client:
        pcm = tone(300)
        for start in range(0, len(pcm), 333):
            await client.append(pcm[start : start + 333])
        await alive(client)
    pushed = b"".join(p.arrays["pcm"].data for p in edge.graph.pushed[edge.graph.of("vad")[0].request_id] if p.arrays)
    assert pushed == pcm[: len(pushed)]


async def test_the_largest_append_is_taken_and_a_larger_one_refused(edge: Edge) -> None:
    limit = edge.context.settings.max_append_bytes
    async with edge.connect() as client:
        await client.send("session.update", session={"audio": {"input": {"turn_detection": None}}})
        await client.until("session.updated")
        await client.append(bytes(limit + 1))
        error = await client.error()
        assert error["param"] == "audio"
        assert str(limit) in error["message"]
        await client.append(bytes(limit))
        await client.send("input_audio_buffer.commit")
        await client.until("input_audio_buffer.committed")
        await alive(client)


async def test_a_message_beyond_all_limits_ends_its_own_connection_only(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(settings=ServerSettings(max_message_bytes=100_000))
    async with edge.connect() as client, edge.connect() as other:
        await client.send_raw("x" * 100_001)
        assert await client.closed() == 1009
        await alive(other)
    await edge.left_alone()


async def test_nothing_is_lost_of_many_small_appends(edge: Edge) -> None:
    async with edge.connect() as client:
        await asyncio.gather(*(client.append(silence(10)) for _ in range(3_000)))
        await alive(client)


async def test_cancel_when_nothing_runs_is_harmless(edge: Edge) -> None:
    async with edge.connect() as client:
        await client.send("response.cancel")
        await alive(client)


async def test_pings_are_answered_while_a_command_takes_long(edge: Edge) -> None:
    gate = edge.graph.hold_submit("thinker")
    async with edge.connect() as client:
        await client.write("Hello")
        await client.send("response.create")
        await client.until("conversation.item.done")
        await client.socket.ping(b"?")
        await client.send("input_audio_buffer.clear")
        gate.release()
        await client.until("response.done")


@pytest.mark.full
async def test_an_inference_of_a_minute_costs_an_impatient_client_nothing(serve_edge: ServeEdge) -> None:
    """It pings every second and gives an answer half of one. Here all goes four times as fast."""
    usual = ServerSettings()
    edge = await serve_edge(
        settings=msgspec.structs.replace(
            usual,
            heartbeat_s=usual.heartbeat_s / 4,
            receive_timeout_s=usual.receive_timeout_s / 4,
            send_timeout_s=usual.send_timeout_s / 4,
        )
    )
    gate = edge.graph.hold_submit("thinker")
    async with edge.http.ws_connect(f"{edge.url}/v1/realtime", heartbeat=1 / 4) as socket:
        client = StrictClient(socket)
        await client.write("Hello")
        await client.send("response.create")
        asyncio.get_running_loop().call_later(60 / 4, gate.release)
        while (event := strict_event((await socket.receive()).data))["type"] != "response.done":
            pass
        assert event["response"]["status"] == "completed"


async def test_an_unknown_model_is_refused_before_the_upgrade(edge: Edge) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with edge.socket("/v1/realtime?model=gpt-9"):
            pass
    assert refused.value.status == 404
    async with edge.http.get(f"{edge.url}/v1/realtime?model=gpt-9") as answer:
        error = (await answer.json())["error"]
    assert error["code"] == "model_not_found"
    assert "antiphon-voice" in error["message"]


async def test_the_model_may_be_left_out_and_the_subprotocol_is_answered(edge: Edge) -> None:
    async with edge.socket(protocols=("openai-agents-sdk.0.20", "realtime")) as client:
        assert client.socket.protocol == "realtime"
        assert (await client.until("session.created"))["session"]["model"] == "antiphon-voice"


async def test_while_models_load_no_session_is_opened(serve_edge: ServeEdge) -> None:
    stages = FakeStages()
    stages.thinker = StageStatus("thinker", StageState.LOADING, 8, "warming up")
    edge = await serve_edge(stages=stages)
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with edge.socket():
            pass
    assert refused.value.status == 503
    async with edge.http.get(f"{edge.url}/v1/realtime") as answer:
        assert int(answer.headers["Retry-After"]) >= 1
        error = (await answer.json())["error"]
    assert (error["code"], error["message"]) == ("not_ready", "not ready, still loading: thinker (warming up)")
    stages.thinker = StageStatus("thinker", StageState.READY, 8)
    async with edge.connect() as client:
        await alive(client)


async def test_a_stage_that_failed_for_good_closes_no_door(serve_edge: ServeEdge) -> None:
    stages = FakeStages()
    stages.thinker = StageStatus("thinker", StageState.FAILED, 8, "out of memory")
    edge = await serve_edge(stages=stages)
    async with edge.connect() as client:
        await alive(client)


async def test_a_session_has_one_connection(edge: Edge) -> None:
    async with edge.http.get(f"{edge.url}/v1/realtime?call_id=c") as answer:
        assert answer.status == 400
        error = (await answer.json())["error"]
    assert (error["code"], error["param"]) == ("unsupported", "call_id")


async def test_a_full_server_says_so_and_closes_with_1013(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=SessionLimits(maximum_sessions=1), admission=AdmissionSettings(longest_queue=0))
    async with edge.connect():
        async with edge.socket() as refused:
            error = await refused.error()
            assert error["code"] == "session_limit_reached"
            assert await refused.closed() == 1013
        assert "session.created" not in refused.types()
    await edge.idle()
    async with edge.connect() as client:
        await alive(client)


async def test_a_draining_server_announces_its_end(edge: Edge) -> None:
    async with edge.connect() as client:
        edge.context.drain.begin()
        assert (await client.error())["code"] == "server_draining"
        assert await client.closed() == 1012
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with edge.socket():
            pass
    assert refused.value.status == 503
    await edge.left_alone()


async def test_an_unforeseen_failure_ends_in_one_funnel(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    async with edge.connect() as client:
        edge.graph.pushed.clear()  # the fake's own bookkeeping breaks at the next push
        await client.append(tone(500))
        assert (await client.error())["code"] == "internal_error"
        assert await client.closed() == 1011
    assert "a realtime connection failed" in caplog.text
    await edge.idle()
    async with edge.connect() as client:
        await alive(client)


async def test_a_lost_worker_fails_the_answer_at_once(edge: Edge) -> None:
    edge.graph.hold("text").step(1)
    async with edge.connect() as client:
        await client.write("Hello")
        await client.send("response.create")
        await client.until("response.output_audio_transcript.delta")
        edge.graph.lose("thinker")
        assert (await client.until("response.done"))["response"]["status"] == "failed"
        await alive(client)


async def test_voice_activity_that_cannot_be_had_is_told(edge: Edge) -> None:
    edge.graph.fail_submit("vad", ErrorKind.OVERLOADED, "no slot")
    async with edge.socket() as client:
        await client.append(tone(100))
        assert "no slot" in (await client.error())["message"]
        await alive(client)


async def test_a_voice_that_is_not_there_changes_nothing(edge: Edge) -> None:
    edge.graph.missing = ("narration",)
    async with edge.connect() as client:
        await client.send("session.update", session={"instructions": "Be rude.", "audio": {"output": {"voice": "heart"}}})
        assert "heart" in (await client.error())["message"]
        await client.send("session.update", session={"audio": {"output": {"speed": 1.25}}})
        session = (await client.until("session.updated"))["session"]
    assert (session["instructions"], session["audio"]["output"]["voice"]) == ("Be brief.", "joe")


async def test_a_silent_peer_is_let_go(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(settings=ServerSettings(heartbeat_s=0.05))
    ends = (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR, aiohttp.WSMsgType.CLOSE)
    async with asyncio.timeout(10), edge.http.ws_connect(f"{edge.url}/v1/realtime", autoping=False) as client:
        while (await client.receive()).type not in ends:
            pass
    await edge.left_alone()


MANUAL = {"audio": {"input": {"turn_detection": None}}}
SAID = {"role": "user", "content": [{"type": "input_text", "text": "x"}]}
NO_CONTENT: dict[str, Any] = {"id": "i", "content": []}
NO_INPUT: dict[str, Any] = {"input": []}
TEXT_ONLY: dict[str, Any] = {"output_modalities": ["text"]}
EVENTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"type": st.sampled_from(KNOWN_TYPES)},
    optional={
        "event_id": st.sampled_from(["a", "b"]) | st.none(),
        "session": st.sampled_from(
            [{}, None, {"instructions": "x"}, {"audio": {"input": {"turn_detection": None}}}, {"tools": 3}]
        ),
        "audio": st.sampled_from(["", "AAAA", "!", None, base64.b64encode(tone(200)).decode()]),
        "item": st.sampled_from([{}, SAID, NO_CONTENT, {"type": "y"}, 3]),
        "item_id": st.sampled_from(["i", "", None]),
        "previous_item_id": st.sampled_from(["root", "i", None]),
        "content_index": st.integers(-1, 1),
        "audio_end_ms": st.integers(-1, 10_000),
        "response": st.sampled_from([{}, None, TEXT_ONLY, {"conversation": "none"}, NO_INPUT, {"x": 1}]),
        "response_id": st.sampled_from(["r", None]),
    },
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENTS, max_size=12))
async def test_events_in_any_order_and_shape_leave_the_session_alive(edge: Edge, events: list[dict[str, Any]]) -> None:
    async with edge.connect() as client:
        for event in events:
            await client.send_raw(json.dumps(event))
        await alive(client)
        assert "internal_error" not in [event.get("error", {}).get("code") for event in client.seen]
