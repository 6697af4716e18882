import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.catalogue import Catalogue
from realtime.errors import Refusal
from realtime.openai_realtime import client_events
from realtime.openai_realtime.to_command import decoded_audio, to_command
from sessions.voice import commands
from sessions.voice.items import InputText, OutputText

CATALOGUE = Catalogue(pipeline="antiphon-voice", voices={"joe": "audio", "heart": "narration"})
MAX = 15 << 20


def command(event: dict[str, Any]) -> commands.Command:
    decoded = client_events.decode(msgspec.json.encode(event))
    assert not isinstance(decoded, client_events.SessionUpdate)
    return to_command(decoded, CATALOGUE, MAX)


def refused(event: dict[str, Any]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        command(event)
    return caught.value


@given(st.binary(min_size=1, max_size=300))
def test_audio_comes_through_as_it_was(pcm: bytes) -> None:
    assert decoded_audio("audio", base64.b64encode(pcm).decode(), MAX) == pcm


NO_BASE64 = ("@@@", "-_-_", "", " AAAA", "AA AA", "AAAA\n", "AAA", "A", "AAAA=", "AAA=AAAA", "AA==" * 70_000, "é")


@pytest.mark.parametrize("text", NO_BASE64)
def test_what_is_no_base64_is_refused(text: str) -> None:
    refusal = refused({"type": "input_audio_buffer.append", "audio": text})
    assert (refusal.body.param, refusal.body.code) == ("audio", "invalid_audio")


@pytest.mark.parametrize("size", [196_607, 196_608, 196_609, 393_217, 1_000_000])
def test_audio_of_several_slices_comes_through_as_it_was(size: int) -> None:
    pcm = bytes(number % 251 for number in range(size))
    assert decoded_audio("audio", base64.b64encode(pcm).decode(), MAX) == pcm


@pytest.mark.parametrize("extra", [-1, 0])
def test_the_largest_append_is_taken(extra: int) -> None:
    assert len(decoded_audio("audio", base64.b64encode(bytes(MAX + extra)).decode(), MAX)) == MAX + extra


@pytest.mark.parametrize("extra", [1, 2, 3, 100_000])
def test_a_larger_append_is_refused_with_both_sizes(extra: int) -> None:
    with pytest.raises(Refusal, match=rf"audio: expected at most {MAX} bytes .* got") as caught:
        decoded_audio("audio", base64.b64encode(bytes(MAX + extra)).decode(), MAX)
    assert caught.value.status == 413


def test_items_of_each_role() -> None:
    user = command(
        {"type": "conversation.item.create", "item": {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}}
    )
    assert isinstance(user, commands.CreateItem)
    assert user.item.parts == (InputText("Hi"),)
    said = {"id": "mine", "role": "assistant", "content": [{"type": "output_text", "text": "Ho"}]}
    assistant = command({"type": "conversation.item.create", "item": said, "previous_item_id": "root"})
    assert isinstance(assistant, commands.CreateItem)
    assert (assistant.item.id, assistant.item.parts, assistant.previous_item_id) == ("mine", (OutputText("Ho"),), "root")


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"type": "function_call_output"}, "item.type"),
        ({"role": "user", "content": []}, "item.content"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "item.content[0].text"),
        ({"role": "user", "content": [{"type": "input_text", "text": "  "}]}, "item.content[0].text"),
        ({"role": "user", "content": [{"type": "input_text", "text": "x" * 100_001}]}, "item.content[0].text"),
        ({"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}, "item.content[0].type"),
        ({"role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]}, "item.content[0]"),
        ({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}, "item.content[0].type"),
        ({"id": "", "content": [{"type": "input_text", "text": "x"}]}, "item.id"),
    ],
)
def test_a_wrong_item_is_refused_by_field(item: dict[str, Any], field: str) -> None:
    refusal = refused({"type": "conversation.item.create", "item": item})
    assert refusal.body.param == field
    assert field in refusal.body.message


def test_a_response_takes_what_it_names_and_leaves_the_rest_to_the_session() -> None:
    assert command({"type": "response.create"}) == commands.CreateResponse()
    asked = command(
        {
            "type": "response.create",
            "response": {
                "output_modalities": ["text"],
                "max_output_tokens": 20,
                "conversation": "none",
                "audio": {"output": {"voice": "heart"}},
                "metadata": {"topic": "x"},
                "input": [],
            },
        }
    )
    assert asked == commands.CreateResponse(
        modality="text", voice="heart", max_output_tokens=20, conversation="none", input=(), metadata={"topic": "x"}
    )
