"""What a session counts of itself."""

import pytest

from fakes.graph import FakeGraph, tone
from fakes.voice_client import settle, talking
from sessions.usage import UsageMeter, seconds_of
from sessions.voice.commands import AppendAudio, CancelResponse, CommandRefused, CommitAudio, CreateResponse
from sessions.voice.events import AudioDelta, ResponseDone, TextDelta
from sessions.voice.settings import VoiceSettings


async def test_a_turn_is_counted_in_seconds_of_sound_and_in_tokens() -> None:
    async with talking() as client:
        assert client.session.usage.totals == {}
        await client.send(AppendAudio(tone(500)), AppendAudio(tone(250)), CommitAudio(), CreateResponse())
        done = await client.until(ResponseDone)
        assert done.response.usage is not None
        made_s = sum(seconds_of(event.pcm) for event in client.of(AudioDelta))
        assert made_s > 1
        assert client.session.usage.totals == {
            "audio_in_s": 0.75,
            "audio_out_s": pytest.approx(made_s),
            "tokens_in": done.response.usage.input_tokens,
            "tokens_out": done.response.usage.output_tokens,
        }


async def test_sound_that_is_refused_is_not_counted() -> None:
    async with talking(settings=VoiceSettings(maximum_buffer_ms=1_000)) as client:
        with pytest.raises(CommandRefused):
            await client.send(AppendAudio(tone(1_500)))
        assert client.session.usage.totals == {}


async def test_what_was_made_counts_also_when_nobody_hears_the_rest() -> None:
    graph = FakeGraph()
    gate = graph.hold("audio")
    async with talking(graph) as client:
        await client.send(AppendAudio(tone(500)), CommitAudio(), CreateResponse())
        await settle()
        gate.step(2)
        await client.until(AudioDelta)
        await settle()
        await client.send(CancelResponse(None))
        await client.until(ResponseDone)
        made_s = sum(seconds_of(event.pcm) for event in client.of(AudioDelta))
        assert 0 < made_s == pytest.approx(client.session.usage.totals["audio_out_s"])


def test_another_node_counts_on_from_what_was_written() -> None:
    meter = UsageMeter({"audio_in_s": 2.0, "tokens_in": 7})
    meter.hear(tone(500))
    assert meter.totals == {"audio_in_s": 2.5, "tokens_in": 7}
    assert meter.written == {"audio_in_s": 2.0, "tokens_in": 7}


async def test_tokens_of_an_answer_that_is_broken_off_count_until_then() -> None:
    graph = FakeGraph()
    graph.answers = [("Well, ", "that ", "is ", "so.")]
    gate = graph.hold("text")
    async with talking(graph) as client:
        await client.send(AppendAudio(tone(500)), CommitAudio(), CreateResponse())
        await settle()
        gate.step(2)
        await client.until(TextDelta, lambda delta: delta.text == "that ")
        await client.send(CancelResponse(None))
        done = await client.until(ResponseDone)
        assert done.response.usage is not None
        assert (done.response.usage.input_tokens, done.response.usage.output_tokens) == (20, 2)
        assert client.session.usage.totals["tokens_out"] == 2
