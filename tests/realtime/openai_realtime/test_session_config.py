from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.realtime import RealtimeSessionCreateRequest

from realtime.catalogue import Catalogue
from realtime.errors import Refusal
from realtime.openai_realtime.session_config import WireSession, apply, shown_session
from realtime.openai_realtime.session_patch import SessionPatch
from sessions.voice.config import SemanticVad, ServerVad, VoiceConfig

CATALOGUE = Catalogue(pipeline="antiphon-voice", voices={"joe": "audio", "heart": "narration"})
START = WireSession(VoiceConfig(model="antiphon-voice", instructions="Be kind.", voice="joe"))


DEPENDENT = (".audio.input.turn_detection.", ".audio.input.format.rate", ".audio.output.format.rate")
"""Another type has other fields beside it."""


def patched(session: WireSession, change: dict[str, Any]) -> WireSession:
    return apply(session, msgspec.convert(change, SessionPatch), CATALOGUE)


def refused(change: dict[str, Any]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        patched(START, change)
    return caught.value


CHANGES: list[dict[str, Any]] = [
    {"instructions": "Be brief."},
    {"output_modalities": ["text"]},
    {"max_output_tokens": 50},
    {"tracing": "auto"},
    {"audio": {"output": {"voice": "heart"}}},
    {"audio": {"output": {"speed": 1.25}}},
    {"audio": {"output": {"format": {"type": "audio/pcma"}}}},
    {"audio": {"input": {"format": {"type": "audio/pcmu"}}}},
    {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "low"}}}},
    {"audio": {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 300}}}},
    {"audio": {"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 6000}}}},
]


@pytest.mark.parametrize("change", CHANGES)
def test_one_key_leaves_every_other_key_as_it_was(change: dict[str, Any]) -> None:
    before, after = _flat(shown_session(START, "s")), _flat(shown_session(patched(START, change), "s"))
    different = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    expected = _flat(change)
    assert {path: after.get(path) for path in expected} == expected
    assert all(path in expected or path.startswith(DEPENDENT) for path in different)


@pytest.mark.parametrize("key", ["transcription", "turn_detection"])
def test_null_switches_off_and_leaves_every_other_key_as_it_was(key: str) -> None:
    before, after = shown_session(START, "s"), shown_session(patched(START, {"audio": {"input": {key: None}}}), "s")
    cast("dict[str, Any]", before["audio"])["input"][key] = None
    assert after == before


@given(st.lists(st.sampled_from(CHANGES), max_size=6))
def test_any_updates_leave_a_session_of_the_stock_type(changes: list[dict[str, Any]]) -> None:
    session = START
    for change in changes:
        session = patched(session, change)
    RealtimeSessionCreateRequest.model_validate(shown_session(session, "s"), strict=True)


def test_turn_detection_merges_within_a_type_and_starts_over_with_another() -> None:
    first = patched(START, {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 0.7}}}})
    second = patched(first, {"audio": {"input": {"turn_detection": {"silence_duration_ms": 250}}}})
    assert second.config.turn_detection == ServerVad(threshold=0.7, silence_ms=250)
    third = patched(second, {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "interrupt_response": False}}}})
    assert third.config.turn_detection == SemanticVad(interrupt_response=False)


def test_null_turn_detection_is_manual_mode_and_needs_a_type_to_come_back() -> None:
    manual = patched(START, {"audio": {"input": {"turn_detection": None}}})
    assert manual.config.turn_detection is None
    with pytest.raises(Refusal, match=r"turn_detection\.type"):
        patched(manual, {"audio": {"input": {"turn_detection": {"create_response": True}}}})


def test_an_idle_timeout_stays_until_null_switches_it_off() -> None:
    waiting = patched(START, {"audio": {"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}}})
    assert patched(waiting, {"audio": {"input": {"turn_detection": {"threshold": 0.4}}}}).config.turn_detection == ServerVad(
        threshold=0.4, idle_timeout_ms=5000
    )
    off = patched(waiting, {"audio": {"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": None}}}})
    assert off.config.turn_detection == ServerVad()
    patched(START, {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "idle_timeout_ms": None}}}})


def test_another_model_is_never_an_error_and_changes_nothing() -> None:
    assert patched(START, {"type": "realtime", "model": "gpt-realtime-2.1"}) == START


def test_stock_voices_stand_for_the_default_one() -> None:
    heart = patched(START, {"audio": {"output": {"voice": "heart"}}})
    assert patched(heart, {"audio": {"output": {"voice": "marin"}}}).config.voice == "joe"


def test_what_stock_agents_send_first_is_accepted() -> None:
    patched(
        START,
        {
            "type": "realtime",
            "model": "gpt-realtime-2.1",
            "output_modalities": ["audio"],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": 24000},
                    "noise_reduction": None,
                    "transcription": {"model": "gpt-4o-mini-transcribe"},
                    "turn_detection": {"type": "semantic_vad"},
                },
                "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "ash", "speed": 1},
            },
            "tool_choice": "auto",
            "tools": [],
            "tracing": "auto",
        },
    )


@pytest.mark.parametrize(
    ("change", "field", "named"),
    [
        ({"audio": {"output": {"voice": "darth"}}}, "session.audio.output.voice", ("darth", "joe", "heart")),
        ({"audio": {"input": {"format": {"type": "audio/opus"}}}}, "session.audio.input.format", ("audio/pcmu", "audio/opus")),
        (
            {"audio": {"input": {"format": {"type": "audio/pcma", "rate": 16000}}}},
            "session.audio.input.format",
            ("audio/pcma at 8000 Hz", "audio/pcma at 16000 Hz"),
        ),
        (
            {"audio": {"output": {"format": {"type": "audio/pcm", "rate": 8000}}}},
            "session.audio.output.format",
            ("24000", "8000"),
        ),
        ({"output_modalities": ["text", "audio"]}, "session.output_modalities", ('["text"]',)),
        ({"tools": [{"type": "function", "name": "f"}]}, "session.tools", ("not served yet",)),
        ({"tool_choice": "required"}, "session.tool_choice", ("required",)),
        ({"prompt": {"id": "p"}}, "session.prompt", ("instructions",)),
        ({"instructions": "x" * 100_001}, "session.instructions", ("100000", "100001")),
        (
            {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "idle_timeout_ms": 5000}}}},
            "session.audio.input.turn_detection.idle_timeout_ms",
            ("5000",),
        ),
        ({"audio": {"input": {"transcription": {"language": "de"}}}}, "session.audio.input.transcription.language", ("en", "de")),
    ],
)
def test_a_refusal_names_field_expected_and_got(change: dict[str, Any], field: str, named: tuple[str, ...]) -> None:
    refusal = refused(change)
    assert refusal.body.param == field
    assert all(name in refusal.body.message for name in (field, *named))


def _flat(value: dict[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        flat |= _flat(cast("dict[str, Any]", inner), f"{path}.{key}") if isinstance(inner, dict) else {f"{path}.{key}": inner}
    return flat
