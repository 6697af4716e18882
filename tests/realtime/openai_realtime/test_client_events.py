import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.openai_realtime import client_events
from realtime.openai_realtime.client_events import KNOWN_TYPES, Malformed, decode


def refused(event: Any) -> Malformed:
    with pytest.raises(Malformed) as caught:
        decode(event if isinstance(event, bytes) else json.dumps(event).encode())
    return caught.value


def test_known_types_are_those_that_decode() -> None:
    for known in KNOWN_TYPES:
        try:
            decode(json.dumps({"type": known}).encode())
        except Malformed as malformed:
            assert malformed.refusal.body.code == "missing_required_parameter"  # noqa: PT017


def test_an_unknown_type_names_the_known_ones_and_keeps_the_event_id() -> None:
    malformed = refused({"type": "response.audio.start", "event_id": "mine"})
    assert malformed.event_id == "mine"
    assert malformed.refusal.body.param == "type"
    assert "response.audio.start" in str(malformed.refusal)
    assert all(known in str(malformed.refusal) for known in KNOWN_TYPES)


@pytest.mark.parametrize("message", [b"", b"{", b"nonsense", b'{"type": "x}', b"\xff\xfe"])
def test_broken_json(message: bytes) -> None:
    assert refused(message).refusal.body.code == "invalid_json"


@pytest.mark.parametrize("message", [b"[]", b"3", b"null", b'"text"', b"{}", b'{"type": null}', b'{"type": 3}', b"[" * 100_000])
def test_json_that_is_no_event(message: bytes) -> None:
    assert refused(message).refusal.body.code in ("invalid_value", "missing_required_parameter", "unknown_event_type")


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"type": "input_audio_buffer.append"}, "audio"),
        ({"type": "input_audio_buffer.append", "audio": 3}, "audio"),
        ({"type": "session.update", "session": {"audio": {"input": {"echo": 1}}}}, "session.audio.input.echo"),
        ({"type": "session.update", "session": {"audio": {"output": {"speed": 9}}}}, "session.audio.output.speed"),
        ({"type": "conversation.item.truncate", "item_id": "a", "content_index": 0, "audio_end_ms": "x"}, "audio_end_ms"),
        ({"type": "conversation.item.truncate", "item_id": "a", "content_index": 0, "audio_end_ms": -1}, "audio_end_ms"),
        ({"type": "conversation.item.truncate", "item_id": "a", "content_index": 0, "audio_end_ms": 10**23}, "audio_end_ms"),
        ({"type": "conversation.item.truncate", "item_id": "a", "content_index": 10**23, "audio_end_ms": 0}, "content_index"),
        ({"type": "response.create", "response": {"max_output_tokens": 0}}, "response.max_output_tokens"),
        ({"type": "response.create", "response": {"max_output_tokens": 10**23}}, "response.max_output_tokens"),
        ({"type": "session.update", "session": {"max_output_tokens": 10**23}}, "session.max_output_tokens"),
        ({"type": "response.cancel", "event_id": 3}, "event_id"),
    ],
)
def test_a_wrong_field_is_named(event: dict[str, Any], field: str) -> None:
    malformed = refused(event)
    assert malformed.refusal.body.param == field
    assert str(malformed.refusal).startswith(f"{field}: expected")


NESTED = [b"[" * depth + b"]" * depth for depth in (*range(900, 1_010), 100_000)]
"""Around what the interpreter's stack holds, and far beyond."""


@pytest.mark.parametrize("event", [b"%s", b'{"type": %s}', b'{"type": "session.update", "session": %s}', b'{"x": %s}'])
def test_deep_nesting_is_refused(event: bytes) -> None:
    for nested in NESTED:
        refused(event % nested)


def test_the_event_id_of_a_malformed_event_is_kept() -> None:
    assert refused({"type": "input_audio_buffer.append", "event_id": "e7", "audio": None}).event_id == "e7"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries({"type": st.sampled_from(KNOWN_TYPES) | JSON}, optional={"session": JSON, "item": JSON, "audio": JSON})
)
def test_anything_decodes_or_is_refused(event: dict[str, Any]) -> None:
    try:
        decoded = decode(json.dumps(event).encode())
    except Malformed as malformed:
        assert malformed.refusal.body.message  # noqa: PT017
    else:
        assert isinstance(decoded, client_events.ClientEvent)
