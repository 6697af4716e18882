"""The server's side plays the answers: what it is told, and what the conversation then remembers."""

import pytest

from fakes.graph import FakeGraph, hiss, silence, tone
from fakes.playout import FakePlayout
from fakes.voice_client import UNGUARDED, VoiceClient, config, settle, talking
from sessions.voice.commands import ClearPlayback, Configure, CreateResponse, RetrieveItem
from sessions.voice.config import SemanticVad, ServerVad
from sessions.voice.events import (
    AudioDelta,
    ItemRetrieved,
    ItemTruncated,
    PlaybackCleared,
    ResponseDone,
    SpeechStarted,
)
from sessions.voice.items import OutputAudio
from sessions.voice.playout import Heard


async def answered(client: VoiceClient) -> tuple[str, str]:
    """A spoken question and its complete answer: the ids of response and item."""
    await client.say(960, 960)
    done = await client.until(ResponseDone)
    return done.response.id, done.response.output[0].id


async def remembered(client: VoiceClient, item_id: str) -> str:
    await client.send(RetrieveItem(item_id))
    part = (await client.until(ItemRetrieved)).item.parts[0]
    assert isinstance(part, OutputAudio)
    return part.transcript


async def test_speech_over_the_playback_of_a_complete_answer_cuts_it() -> None:
    playout = FakePlayout()
    async with talking(settings=UNGUARDED, voice_config=config(SemanticVad()), playout=playout) as client:
        response_id, item_id = await answered(client)
        playout.unfinished = (Heard(response_id, item_id, 1_400),)
        await client.say(96)
        await client.until(SpeechStarted)
        assert (await client.until(PlaybackCleared)).response_id == response_id
        assert (await client.until(ItemTruncated)).audio_end_ms == 1_400
        assert playout.told[-2:] == ["hold", "clear"]
        assert await remembered(client, item_id) == "The capital of France"


async def test_speech_in_mid_answer_clears_before_the_closing_events() -> None:
    graph, playout = FakeGraph(), FakePlayout()
    gate = graph.hold("audio")
    gate.step(1)
    async with talking(graph, UNGUARDED, config(SemanticVad()), playout) as client:
        await client.say(960, 960)
        sound = await client.until(AudioDelta)
        playout.unfinished = (Heard(sound.response_id, sound.item_id, 400),)
        await client.say(96)
        done = await client.until(ResponseDone)
        assert (done.response.status, done.response.reason) == ("cancelled", "turn_detected")
        names = client.names()
        order = [names.index(name) for name in ("PlaybackCleared", "ItemTruncated", "ResponseDone")]
        assert order == sorted(order)
        assert await remembered(client, sound.item_id) in "The capital of France"


async def test_a_click_holds_the_answer_and_lets_it_go_on() -> None:
    playout = FakePlayout()
    async with talking(voice_config=config(SemanticVad()), playout=playout) as client:
        await answered(client)
        playout.told.clear()
        await client.say(32, 96)
        assert playout.told == ["hold", "resume"]
        assert client.of(PlaybackCleared) == []


async def test_a_loud_sound_holds_the_answer_before_it_turns_out_to_be_a_voice() -> None:
    playout = FakePlayout()
    async with talking(settings=UNGUARDED, voice_config=config(SemanticVad()), playout=playout) as client:
        response_id, item_id = await answered(client)
        playout.unfinished = (Heard(response_id, item_id, 1_400),)
        playout.told.clear()
        await client.sound(hiss(96))
        assert playout.told == ["hold"]
        assert client.of(PlaybackCleared) == []
        await client.sound(tone(128))
        assert playout.told == ["hold", "clear"]


async def test_loud_sounds_that_are_no_voice_hold_the_answer_once_and_not_again() -> None:
    playout = FakePlayout()
    async with talking(voice_config=config(SemanticVad()), playout=playout) as client:
        await answered(client)
        playout.told.clear()
        await client.sound(*(hiss(96), silence(200)) * 10)
        assert playout.told == ["hold", "resume"]
        assert client.of(PlaybackCleared) == []
        await client.sound(silence(3_000), hiss(96))
        assert playout.told == ["hold", "resume", "hold"]


async def test_without_interruption_nothing_is_held() -> None:
    playout = FakePlayout()
    async with talking(voice_config=config(ServerVad(interrupt_response=False)), playout=playout) as client:
        response_id, item_id = await answered(client)
        playout.unfinished = (Heard(response_id, item_id, 100),)
        await client.say(300, 960)
        await client.until(ResponseDone)
        assert set(playout.told) <= {"resume"}


async def test_a_hold_does_not_outlive_the_listening() -> None:
    playout = FakePlayout()
    async with talking(voice_config=config(SemanticVad()), playout=playout) as client:
        await answered(client)
        await client.say(32)
        await client.send(Configure(config(None)))
        assert playout.told[-2:] == ["hold", "resume"]


@pytest.mark.parametrize("running", [True, False])
async def test_the_client_clears_the_playback(running: bool) -> None:
    graph, playout = FakeGraph(), FakePlayout()
    if running:
        graph.hold("audio").step(1)
    async with talking(graph, playout=playout) as client:
        await client.send(CreateResponse())
        sound = await client.until(AudioDelta)
        if not running:
            await client.until(ResponseDone)
        playout.unfinished = (Heard(sound.response_id, sound.item_id, 240),)
        await client.send(ClearPlayback())
        await settle()
        assert [event.response_id for event in client.of(PlaybackCleared)] == [sound.response_id]
        assert [event.audio_end_ms for event in client.of(ItemTruncated)] == [240]
        if running:
            done = await client.until(ResponseDone)
            assert (done.response.status, done.response.reason) == ("cancelled", "client_cancelled")


async def test_clearing_silence_is_harmless() -> None:
    playout = FakePlayout()
    async with talking(playout=playout) as client:
        await client.send(ClearPlayback())
        assert client.of(PlaybackCleared) == []


async def test_an_answer_out_of_band_is_cleared_without_a_truncation() -> None:
    playout = FakePlayout()
    async with talking(playout=playout) as client:
        await client.send(CreateResponse(conversation="none"))
        done = await client.until(ResponseDone)
        playout.unfinished = (Heard(done.response.id, done.response.output[0].id, 20),)
        await client.send(ClearPlayback())
        await client.until(PlaybackCleared)
        assert client.of(ItemTruncated) == []


async def test_sound_that_nobody_has_read_is_taken_back_also_of_a_complete_answer() -> None:
    playout = FakePlayout()
    async with talking(voice_config=config(SemanticVad()), playout=playout) as client:
        client.reading.clear()
        await client.say(960, 960)
        await settle()
        await client.say(96)
        client.reading.set()
        await client.until(SpeechStarted)
        await client.until(ResponseDone)
        assert len(client.of(AudioDelta)) <= 1
