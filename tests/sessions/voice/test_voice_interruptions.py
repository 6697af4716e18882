"""The user makes a sound while the agent has the floor: held at once, then confirmed or denied."""

import msgspec
import numpy as np
import pytest

from fakes.graph import MS_PER_CHARACTER, FakeGraph, silence, tone
from fakes.playout import FakePlayout
from fakes.talkative import LONG, SETTLED_MS, Floor, answering, scripted
from fakes.voice_client import UNGUARDED, VoiceClient, config, settle, talking
from sessions.voice.commands import AppendAudio, CommitAudio, Configure
from sessions.voice.config import SemanticVad, ServerVad
from sessions.voice.events import (
    AudioCommitted,
    ItemDone,
    PlaybackCleared,
    ResponseCreated,
    ResponseDone,
    SpeechStarted,
    SpeechStopped,
)
from sessions.voice.items import InputAudio
from sessions.voice.settings import VoiceSettings

SETTINGS = VoiceSettings()
DELAY_MS, GAIN = 100, 0.1
PACKET_BYTES = 960


async def test_a_hum_lets_the_agent_go_on_and_leaves_nothing() -> None:
    graph, playout = scripted("Mhm."), Floor()
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        names, playout.told = client.names(), []
        await client.say(320, 640)
        assert playout.told == ["hold", "resume"]
        assert client.names() == names
        assert len(graph.of("asr")) == 1
        assert graph.open_requests == 2  # voice activity and the answer


async def test_a_cough_is_denied_at_its_pause_without_recognition() -> None:
    graph, playout = scripted("never asked"), Floor()
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        playout.told = []
        await client.say(128, SETTINGS.pause_ms + 64)
        assert playout.told == ["hold", "resume"]
        assert graph.of("asr") == []
        assert client.of(SpeechStarted) == client.of(SpeechStopped) == []


@pytest.mark.parametrize("words", ["Stop.", "No.", "Yeah, but wait.", "停一下", "Стоп!"])
async def test_a_short_word_interrupts_at_its_pause(words: str) -> None:
    graph, playout = scripted(words), Floor()
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        playout.told = []
        await client.say(320, SETTINGS.pause_ms + 64)
        started = await client.until(SpeechStarted)
        assert playout.told == ["hold", "clear"]
        assert (await client.until(PlaybackCleared)).response_id == "resp_1"
        assert (await client.until(ResponseDone)).response.reason == "turn_detected"
        await client.say(0, 960)
        assert (await client.until(SpeechStopped)).item_id == started.item_id
        item = (await client.until(ItemDone, lambda done: done.item.id == started.item_id)).item
        assert isinstance(item.parts[0], InputAudio)
        await client.until(ResponseCreated)


async def test_words_interrupt_while_the_user_still_speaks() -> None:
    graph, playout = scripted("No, that is"), Floor()
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(SETTINGS.interruption_ms - 64)
        assert client.of(SpeechStarted) == []
        assert graph.of("asr") == []
        await client.say(128)
        await client.until(SpeechStarted)
        assert len(graph.of("asr")) == 1


async def test_length_interrupts_where_words_do_not_matter() -> None:
    graph, playout = scripted("never asked"), Floor()
    settings = msgspec.structs.replace(SETTINGS, interruption_words=0, backchannels=())
    async with talking(graph, settings, config(SemanticVad()), playout) as client:
        await answering(client)
        await client.say(SETTINGS.interruption_ms - 64)
        assert client.of(SpeechStarted) == []
        await client.say(128)
        await client.until(SpeechStarted)
        assert graph.of("asr") == []


@pytest.mark.parametrize("phase", range(20))
async def test_engines_stand_still_once_it_is_confirmed_and_nothing_stale_follows(phase: int) -> None:
    graph, playout = scripted("Stop."), Floor()
    graph.hold("audio").step(phase)
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(200 + 32 * phase, 200)
        confirmed = client.events.index(await client.until(SpeechStarted))
        assert graph.aborted == [graph.of("thinker")[0].request_id]
        graph.hold("audio").release()
        await client.say(0, 60)
        assert [name for name in client.names()[confirmed:] if name in ("AudioDelta", "TextDelta")] == []


async def test_an_unconfirmed_noise_costs_a_pending_answer_nothing() -> None:
    """Between the end of the question and the first sound: 96 ms to half a second of it."""
    for noise_ms in (96, 128, 159, 300, 500):
        graph, playout = FakeGraph(), FakePlayout()
        graph.transcripts = ["What is the capital of France?", ""]
        graph.hold_submit("thinker")
        settings = VoiceSettings(head_start=False)
        async with talking(graph, settings, config(SemanticVad()), playout) as client:
            await client.say(960, 960)
            await client.until(ResponseCreated)
            playout.told = []
            await client.say(noise_ms)
            assert playout.told == ["hold"]
            graph.hold_submit("thinker").release()
            await client.say(0, 960)
            assert playout.told == ["hold", "resume"]
            assert (await client.until(ResponseDone)).response.status == "completed"
            assert len(client.of(SpeechStarted)) == 1


async def test_a_noise_before_the_transcript_is_known_costs_nothing_either() -> None:
    graph, playout = FakeGraph(), FakePlayout()
    graph.transcripts = ["What is the capital of France?", ""]
    transcript = graph.hold("transcript")
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await client.say(960, 960, 300)
        transcript.release()
        await settle()
        assert client.of(ResponseCreated) == []  # not while it is open whether the user speaks on
        await client.say(0, 300)
        assert (await client.until(ResponseDone)).response.status == "completed"


async def test_who_speaks_on_before_the_answer_sounds_is_heard_with_a_yes() -> None:
    graph, playout = scripted("I would like a coffee.", "Yes."), FakePlayout()
    graph.hold_submit("thinker")
    async with talking(graph, VoiceSettings(head_start=False), config(SemanticVad()), playout) as client:
        await client.say(960, 960)
        await client.until(ResponseCreated)
        await client.say(320, 300)
        assert (await client.until(ResponseDone)).response.reason == "turn_detected"


async def test_a_hanging_recogniser_holds_nobody_up() -> None:
    graph, playout = scripted("Stop."), Floor()
    graph.hold("transcript")
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(320, SETTINGS.pause_ms + SETTINGS.interruption_words_ms - 64)
        assert client.of(SpeechStarted) == []
        await client.say(0, 128)
        await client.until(SpeechStarted)
        await client.say(0, 960)
        await client.until(SpeechStopped)
        graph.hold("transcript").release()
        await client.until(ResponseCreated)


async def test_a_failing_recogniser_means_that_length_decides() -> None:
    graph, playout = scripted("Stop."), Floor()
    graph.fail("transcript")
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(320, 200)
        await client.until(SpeechStarted)


async def test_going_on_after_a_pause_is_judged_anew() -> None:
    graph, playout = scripted("Mhm.", "I want to ask something."), Floor()
    graph.hold("transcript")
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(320, 128, 320)
        assert graph.aborted == [graph.of("asr")[0].request_id]
        graph.hold("transcript").release()
        await client.say(0, 128)
        await client.until(SpeechStarted)


async def test_words_that_are_not_there_yet_are_asked_for_again() -> None:
    graph, playout = scripted("", "Could you please stop?"), Floor()
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(SETTINGS.interruption_ms + 100)
        assert client.of(SpeechStarted) == []
        await client.say(SETTINGS.interruption_ms + 100)
        await client.until(SpeechStarted)


async def test_a_noise_without_words_keeps_the_agent_for_two_seconds_at_most() -> None:
    """Also an answer that has not begun yet."""
    graph, playout = FakeGraph(), FakePlayout()
    graph.transcripts = ["What is the capital of France?", ""]
    transcript = graph.hold("transcript")
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await client.say(960, 960, 300)
        transcript.release()
        await client.say(1_600)
        assert client.of(ResponseCreated) == []
        await client.say(200)
        assert playout.told[-1] == "resume"
        await client.until(ResponseDone)
        assert len(client.of(SpeechStarted)) == 1


@pytest.mark.parametrize("settled_ms", [500, SETTLED_MS])
async def test_the_agents_words_do_not_interrupt_it_where_the_client_plays(settled_ms: int) -> None:
    graph, playout = scripted("this is sentence one", "this is sentence one", "tell me something else"), Floor(levels=False)
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client, settled_ms)
        await client.say(900, 300)
        assert client.of(SpeechStarted) == []
        await client.say(900, 300)
        await client.until(SpeechStarted)


def syllables(ms: int) -> bytes:
    """Sound that the fake voice activity takes for speech, as loud and as soft as syllables are."""
    random = np.random.default_rng(5)
    loudness = np.repeat(random.uniform(0.3, 2.5, ms // 60 + 1), 60 * 24)[: ms * 24]
    return (np.frombuffer(tone(ms), "<i2") * loudness).astype("<i2").tobytes()


async def feed_back(client: VoiceClient, playout: FakePlayout, played: bytes, voice: bytes = b"") -> None:
    """The agent's sound comes back 100 ms later and 20 dB fainter, beside what the user says."""
    levels = [-100.0] * 100
    late = bytes(48 * DELAY_MS) + played
    for start in range(0, len(played), PACKET_BYTES):
        slot = np.frombuffer(played[start : start + PACKET_BYTES], "<i2").astype(np.float64) / 32_768
        levels = [*levels[1:], max(10 * np.log10(np.square(slot).mean() + 1e-10), -100.0)]
        playout.played_levels = levels
        heard = np.frombuffer(late[start : start + PACKET_BYTES], "<i2") * GAIN
        said = np.frombuffer(voice[start : start + PACKET_BYTES].ljust(PACKET_BYTES, b"\0"), "<i2")
        await client.send(AppendAudio((heard + said).astype("<i2").tobytes()))
        await settle()


async def test_the_agent_fed_back_does_not_interrupt_itself_and_does_not_stutter() -> None:
    graph, playout = scripted("never asked"), Floor()
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client, 100)
        playout.told = []
        flutter = silence(6_020) + tone(10)
        await feed_back(client, playout, silence(500) + syllables(8_000), flutter)
        assert playout.told.count("hold") <= 1
        assert client.of(SpeechStarted) == []
        assert graph.of("asr") == []


async def test_without_the_guard_the_agent_interrupts_itself() -> None:
    playout = Floor()
    async with talking(scripted("x"), UNGUARDED, config(SemanticVad()), playout) as client:
        await answering(client, 100)
        await feed_back(client, playout, silence(500) + syllables(2_000))
        await client.until(SpeechStarted)


async def test_a_voice_over_the_echo_is_heard() -> None:
    playout = Floor()
    async with talking(scripted("Could you please stop?"), voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client, 100)
        voice = silence(3_000) + tone(1_500) + silence(500)
        await feed_back(client, playout, silence(500) + syllables(4_500), voice)
        await client.until(SpeechStarted)


@pytest.mark.parametrize("spoken_ms", [320, 800])
async def test_an_answer_is_begun_in_the_pause_of_an_interruption_and_used(spoken_ms: int) -> None:
    """Confirmed in that pause, or before."""
    graph, playout = scripted("Tell me about Paris."), FakePlayout()
    graph.endings = [0.01]
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(spoken_ms, 400)
        assert len(graph.of("thinker")) == 2
        assert client.of(AudioCommitted) == []
        await client.say(0, 960)
        await client.until(ResponseCreated)
        assert len(graph.of("thinker")) == 2


async def test_none_is_begun_for_what_is_denied() -> None:
    graph, playout = FakeGraph(), Floor()
    graph.transcripts = ["Yeah."]
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.until(ResponseDone)  # its sound is still being played
        await client.say(320, 960)
        assert len(graph.of("thinker")) == 1


async def test_a_turn_does_not_end_before_its_words_are_known() -> None:
    graph, playout = scripted("Stop."), Floor()
    transcript = graph.hold("transcript")
    async with talking(graph, voice_config=config(ServerVad(silence_ms=200)), playout=playout) as client:
        await answering(client)
        await client.say(320, 400)
        assert client.of(SpeechStarted) == client.of(SpeechStopped) == []
        transcript.release()
        await client.until(SpeechStarted)
        await client.until(SpeechStopped)
        await client.until(ResponseCreated)


@pytest.mark.parametrize(
    ("off", "words"),
    [
        (UNGUARDED, "Mhm."),
        (msgspec.structs.replace(SETTINGS, backchannels=()), "Mhm."),
        (msgspec.structs.replace(SETTINGS, interruption_words=0), ""),
    ],
)
async def test_each_guard_can_be_switched_off(off: VoiceSettings, words: str) -> None:
    for settings, interrupts in ((SETTINGS, False), (off, True)):
        playout = Floor()
        async with talking(scripted(words), settings, config(SemanticVad()), playout) as client:
            await answering(client)
            await client.say(320, 300)
            assert bool(client.of(SpeechStarted)) is interrupts


async def test_a_client_may_commit_what_is_not_confirmed() -> None:
    graph, playout = scripted("Mhm."), Floor()
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(320)
        await client.send(CommitAudio())
        await client.until(AudioCommitted)
        assert client.of(SpeechStarted) == client.of(SpeechStopped) == []
        assert playout.told[-1] == "resume"


async def test_listening_may_be_switched_off_before_it_is_decided() -> None:
    graph, playout = scripted("Stop."), Floor()
    graph.hold("transcript")
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(320, 120)
        assert len(graph.of("asr")) == 1
        await client.send(Configure(config(None)))
        assert playout.told[-1] == "resume"
        await client.say(0, 500)
        assert client.of(SpeechStarted) == []


async def test_interruption_may_be_switched_off_before_it_is_decided() -> None:
    playout = Floor()
    async with talking(scripted("Stop."), voice_config=config(ServerVad()), playout=playout) as client:
        await answering(client)
        await client.say(320)
        await client.send(Configure(config(ServerVad(interrupt_response=False))))
        await client.say(0, 700)
        await client.until(SpeechStopped)
        assert playout.told[-1] == "resume"
        assert client.of(PlaybackCleared) == []


async def test_words_interrupt_where_no_silence_is_asked_for() -> None:
    playout = Floor()
    async with talking(scripted("Stop talking."), voice_config=config(ServerVad(silence_ms=0)), playout=playout) as client:
        await answering(client)
        await client.say(1_500)
        await client.until(SpeechStarted)


def test_how_long_the_fake_agent_speaks() -> None:
    """The tests above rely on it."""
    assert len(LONG[0]) * MS_PER_CHARACTER > 1_000
