"""Whole spoken turns over a scripted graph."""

import pytest

from engines.messages.to_gateway import ErrorKind
from engines.parameters import Generation, Message, Speech
from fakes.graph import FakeGraph, silence, tone
from fakes.voice_client import config, settle, talking
from sessions.voice.commands import AppendAudio, Configure
from sessions.voice.config import SemanticVad, ServerVad
from sessions.voice.events import (
    AudioDelta,
    ItemDone,
    ResponseCreated,
    ResponseDone,
    SessionError,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    TranscriptCompleted,
    TranscriptFailed,
)
from sessions.voice.items import InputAudio, OutputAudio
from sessions.voice.settings import VoiceSettings

FINISHED_MS, UNFINISHED_MS = VoiceSettings().finished_silence_ms, VoiceSettings().unfinished_silence_ms

ORDER = [
    "Opened",
    "SpeechStarted",
    "SpeechStopped",
    "AudioCommitted",
    "ItemAdded",
    "ItemDone",
    "TranscriptCompleted",
    "ResponseCreated",
    "OutputItemAdded",
    "ItemAdded",
    "PartAdded",
    "TextDelta",
    "AudioDelta",
    "TextDelta",
    "AudioDelta",
    "AudioDone",
    "TextDone",
    "PartDone",
    "ItemDone",
    "OutputItemDone",
    "ResponseDone",
]


async def test_a_spoken_turn_in_the_order_of_the_wire() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        done = await client.until(ResponseDone)
        assert client.names() == ORDER
        assert done.response.status == "completed"
        assert client.of(SpeechStarted)[0].audio_start_ms == 0
        assert client.of(SpeechStopped)[0].audio_end_ms == 960
        asked = client.graph.of("thinker")[0]
        assert asked.outputs == ("text", "audio")
        assert (asked.session_id, asked.fence) == ("sess_1", 7)
        thinking = asked.parameters["thinker"]
        assert isinstance(thinking, Generation)
        assert thinking.messages == (Message("system", "Be brief."), Message("user", "What is the capital of France?"))
        assert thinking.max_tokens == 120
        assert {stage for stage, wish in asked.parameters.items() if isinstance(wish, Speech)} == {"talker", "code2wav"}


async def test_the_answer_is_an_item_with_its_text_and_length() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        done = await client.until(ResponseDone)
        item = done.response.output[0]
        assert item.parts == (OutputAudio("The capital of France is Paris.", 31 * 60),)
        assert item.status == "completed"
        assert [delta.pts_ms for delta in client.of(AudioDelta)] == [0, 22 * 60]
        assert all(delta.spoken for delta in client.of(TextDelta))


async def test_timing_counts_from_the_end_of_speech() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(1_000, 1_000)
        done = await client.until(ResponseDone)
        timing, usage = done.response.timing, done.response.usage
        assert timing is not None
        assert usage is not None
        assert timing.decision_ms == pytest.approx(FINISHED_MS, abs=32)
        assert timing.transcript_ms is not None
        assert timing.decision_ms is not None
        assert timing.transcript_ms < timing.decision_ms  # recognised during the pause
        assert timing.ttfa_ms == pytest.approx(timing.decision_ms)
        assert set(timing.stages) == {"asr", "thinker"}
        assert timing.rtf == pytest.approx(4 / (31 * 60))
        assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.output_audio_ms) == (20, 8, 2, 31 * 60)
        assert usage.input_audio_ms == pytest.approx(1_056, abs=32)


async def test_recognition_starts_in_the_pause_and_is_discarded_when_speech_goes_on() -> None:
    graph = FakeGraph()
    graph.endings = [0.01, 0.95]
    graph.hold("transcript")
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 500)
        assert len(graph.of("asr")) == 1
        await client.say(500)
        assert graph.aborted == [graph.of("asr")[0].request_id]
        await client.say(0, 960)
        graph.hold("transcript").release()
        await client.until(ResponseDone)
        assert len(client.of(SpeechStopped)) == 1
        assert len(graph.of("asr")) == 2
        item = client.of(ItemDone)[0].item
        assert isinstance(item.parts[0], InputAudio)
        assert item.parts[0].duration_ms == pytest.approx(960 + 500 + 500, abs=32)


async def test_the_answer_waits_for_a_late_transcript_and_no_longer() -> None:
    graph = FakeGraph()
    graph.hold("transcript")
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        assert client.names()[-1] == "ItemDone"
        graph.hold("transcript").release()
        await client.until(ResponseDone)
        assert client.names() == ORDER


async def test_server_vad_asks_no_hint() -> None:
    async with talking(voice_config=config(ServerVad(silence_ms=400))) as client:
        await client.say(960, 960)
        done = await client.until(ResponseDone)
        assert client.graph.of("turn") == []
        assert client.graph.weighed() == []
        assert done.response.timing is not None
        assert done.response.timing.decision_ms == pytest.approx(416, abs=50)


async def test_the_words_are_weighed_alone_and_without_their_last_mark() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        for _ in range(2):
            await client.say(960, 960)
            await client.until(ResponseDone)
        weighing = client.graph.weighed()[-1].parameters["thinker"]
        assert isinstance(weighing, Generation)
        system = Message("system", VoiceSettings().instructions)
        assert weighing.messages == (system, Message("user", "What is the capital of France"))


async def _decided_after_ms(graph: FakeGraph) -> float:
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 1_200)
        done = await client.until(ResponseDone)
        assert client.of(SessionError) == []
        assert done.response.timing is not None
        assert done.response.timing.decision_ms is not None
        return done.response.timing.decision_ms


async def test_unfinished_words_get_the_longest_silence() -> None:
    graph = FakeGraph()
    graph.endings = [0.01]
    assert await _decided_after_ms(graph) == pytest.approx(UNFINISHED_MS, abs=50)


async def test_a_sound_that_goes_on_makes_unsure() -> None:
    graph = FakeGraph()
    graph.transcripts, graph.endings, graph.end_of_turn = ["I would like to go."], [0.28], [0.5]
    assert FINISHED_MS + 50 < await _decided_after_ms(graph) < UNFINISHED_MS - 50


async def test_a_question_is_sooner_taken_for_finished() -> None:
    graph = FakeGraph()
    graph.transcripts, graph.endings = ["I would like to go.", "Would you like to go?"], [0.15]
    assert await _decided_after_ms(graph) == pytest.approx(UNFINISHED_MS, abs=50)
    assert await _decided_after_ms(graph) == pytest.approx(FINISHED_MS, abs=50)


async def test_without_an_end_of_turn_model_the_words_decide() -> None:
    assert await _decided_after_ms(FakeGraph(missing=("end_of_turn",))) == pytest.approx(FINISHED_MS, abs=50)


@pytest.mark.parametrize(("failing", "expected_ms"), [("ending", UNFINISHED_MS), ("end_of_turn", FINISHED_MS)])
async def test_a_failed_hint_only_costs_time(failing: str, expected_ms: float) -> None:
    graph = FakeGraph()
    graph.fail(failing)
    assert await _decided_after_ms(graph) == pytest.approx(expected_ms, abs=50)


async def test_a_late_hint_ends_the_turn_at_once() -> None:
    graph = FakeGraph()
    gate = graph.hold("ending")
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 700)
        assert client.of(SpeechStopped) == []
        gate.release()
        await client.until(ResponseDone)


async def test_a_turn_without_words_gets_no_answer_and_the_next_turn_works() -> None:
    graph = FakeGraph()
    graph.transcripts = [" ", "Hello."]
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        assert client.of(ResponseCreated) == []
        assert client.of(TranscriptCompleted)[0].transcript == ""
        await client.say(960, 960)
        await client.until(ResponseDone)
        thinking = graph.of("thinker")[0].parameters["thinker"]
        assert isinstance(thinking, Generation)
        assert [message.content for message in thinking.messages] == ["Be brief.", "Hello."]


async def test_a_click_and_a_cough_are_no_turns() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(64, 500, 100, 1_000)
        assert client.names() == ["Opened", "SpeechStarted", "SpeechStopped"]
        assert client.graph.of("asr") == []
        await client.say(960, 960)
        await client.until(ResponseDone)


async def test_create_response_false_only_recognises() -> None:
    async with talking(voice_config=config(ServerVad(create_response=False))) as client:
        await client.say(960, 960)
        await client.until(TranscriptCompleted)
        await settle()
        assert client.of(ResponseCreated) == []


async def test_transcripts_are_told_only_when_wanted() -> None:
    async with talking(voice_config=config(SemanticVad(), transcribe_input=False)) as client:
        await client.say(960, 960)
        await client.until(ResponseDone)
        assert client.of(TranscriptCompleted) == []


async def test_recognition_fails() -> None:
    graph = FakeGraph()
    graph.fail("transcript")
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        done = await client.until(ResponseDone)
        assert (done.response.status, done.response.reason) == ("failed", "engine_failed")
        assert "scripted" in done.response.message
        assert len(client.of(TranscriptFailed)) == 1
        await client.say(960, 960)
        assert (await client.until(ResponseDone)).response.status == "completed"


@pytest.mark.parametrize("output", ["text", "audio"])
@pytest.mark.parametrize("after", [0, 1])
async def test_an_engine_fails_in_mid_answer(output: str, after: int) -> None:
    graph = FakeGraph()
    graph.fail(output, after=after)
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        done = await client.until(ResponseDone)
        assert (done.response.status, done.response.reason) == ("failed", "engine_failed")
        assert done.response.output[0].status == "incomplete"
        assert client.names()[-6:] == ["AudioDone", "TextDone", "PartDone", "ItemDone", "OutputItemDone", "ResponseDone"]
        await client.say(960, 960)
        assert (await client.until(ResponseDone)).response.status == "completed"


async def test_the_thinker_refuses() -> None:
    graph = FakeGraph()
    graph.fail_submit("thinker", ErrorKind.OVERLOADED, "no slot")
    async with talking(graph, VoiceSettings(head_start=False), config(SemanticVad())) as client:
        await client.say(960, 960)
        done = await client.until(ResponseDone)
        assert done.response.status == "failed"
        assert done.response.output == ()
        assert "no slot" in done.response.message


async def test_a_lost_ear_is_told_opened_again_and_misses_nothing() -> None:
    graph = FakeGraph()
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(480)
        graph.lose("vad")
        await client.until(SessionError, lambda error: error.code == "voice_activity_lost")
        await client.say(480)
        assert len(graph.of("vad")) == 1  # not before the retry time
        client.now_s += 1.0
        await client.say(0, 960)
        await client.until(ResponseDone)
        assert client.of(SpeechStopped)[0].audio_end_ms == 960


async def test_what_is_said_before_the_ear_is_open_is_recognised() -> None:
    graph = FakeGraph()
    graph.hold_submit("vad")
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        assert client.names() == ["Opened"]
        graph.hold_submit("vad").release()
        await client.until(ResponseDone)
        assert client.of(SpeechStarted)[0].audio_start_ms == 0
        asked = graph.pushed[graph.of("asr")[0].request_id]
        assert bytes(asked[0].arrays["pcm"].data).startswith(tone(960))


async def test_what_is_said_while_the_ear_is_opened_again_is_recognised() -> None:
    graph = FakeGraph()
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(0, 2_000)
        graph.lose("vad")
        await client.until(SessionError, lambda error: error.code == "voice_activity_lost")
        graph.hold_submit("vad")
        client.now_s += 1.0
        await client.say(960, 960)
        graph.hold_submit("vad").release()
        await client.until(ResponseDone)
        asked = graph.pushed[graph.of("asr")[0].request_id]
        assert tone(960)[:960] in bytes(asked[0].arrays["pcm"].data)


@pytest.mark.parametrize("detection", [SemanticVad(), ServerVad()])
async def test_turns_without_speech_get_no_answer_and_the_next_one_works(detection: SemanticVad | ServerVad) -> None:
    graph = FakeGraph()
    graph.transcripts = ["", "", "Hello."]
    async with talking(graph, voice_config=config(detection)) as client:
        await client.send(AppendAudio(b""), AppendAudio(b"\x00"), AppendAudio(silence(3_000)), AppendAudio(b"\x00"))
        await client.say(300, 1_500, 2_000, 1_500)  # what voice activity takes for speech, and the recogniser does not
        assert client.of(ResponseCreated) == []
        await client.say(960, 960)
        assert (await client.until(ResponseDone)).response.status == "completed"
        assert client.of(SessionError) == []


async def test_a_lost_thinker_fails_only_the_answer() -> None:
    graph = FakeGraph()
    graph.hold("audio")
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        graph.lose("thinker")
        done = await client.until(ResponseDone)
        assert done.response.status == "failed"
        assert "worker lost" in done.response.message


async def test_a_long_turn_is_recognised_through_the_vad_stage() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(31_000, 960)
        await client.until(ResponseDone)
        assert [request.outputs for request in client.graph.of("vad")] == [("activity",), ("transcript",)]


async def test_turn_detection_switches_off_and_on() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(480)
        await client.send(Configure(config(None)))
        await settle()
        assert client.graph.open_requests == 0
        stopped = client.of(SpeechStopped)
        await client.say(480, 960)
        assert client.of(SpeechStopped) == stopped
        await client.send(Configure(config(ServerVad())))
        await settle()
        await client.say(960, 960)
        done = await client.until(ResponseDone)
        assert done.response.status == "completed"


async def test_new_instructions_and_voice_reach_the_next_answer() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        await client.until(ResponseDone)
        await client.send(Configure(config(SemanticVad(), instructions="Be long.", voice="heart", speed=1.5)))
        await client.say(960, 960)
        await client.until(ResponseDone)
        asked = client.graph.of("thinker")[1]
        thinking, speaking = asked.parameters["thinker"], asked.parameters["narrator"]
        assert isinstance(thinking, Generation)
        assert isinstance(speaking, Speech)
        assert thinking.messages[0].content == "Be long."
        assert asked.outputs == ("text", "narration")
        assert (speaking.voice, speaking.speed) == ("heart", 1.5)
        assert asked.epoch > client.graph.of("thinker")[0].epoch


async def test_an_hour_of_silence_holds_no_memory() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(960, 960)
        await client.until(ResponseDone)
        for _ in range(60):
            await client.send(AppendAudio(silence(60_000)))
            await settle()
        assert client.names() == ORDER
